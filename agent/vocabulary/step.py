"""The request, response and permissions of a step."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.message import Message
from agent.vocabulary.status import StepStatus
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.result import CallStatus

# The tool that runs a step's check.
CHECK_TOOL = "run_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorProfile:
    """Permissions and limits of a step; `allowed_tools` None means every registered tool.

    `max_retries` limits the retries of the step and of each of its requests; None leaves it to the kind of failure.
    `may_check` is whether its check may run: that depends on the profile alone, not on the tools of the step.
    With `read_only` nothing is changed, and only read-only commands are run. `model` and `instructions` are for
    steps that name no model, and for every step.
    """

    name: str = "default"
    allowed_tools: tuple[str, ...] | None = None
    read_only: bool = False
    model: str = ""
    instructions: str = ""
    timeout_ms: int = 600_000
    max_retries: int | None = None
    max_turns: int = 50
    may_check: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRequest:
    """One step to run, with its context; `history` is the conversation to continue."""

    task_id: str
    goal: str
    context: str = ""
    history: tuple[Message, ...] = ()
    expected_outputs: str | None = None
    model: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """One output of a step: a text, or the path of a file."""

    type: str
    content: str = ""
    path: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFact:
    """The record of a tool call, as evidence."""

    tool: str
    args: Mapping[str, object]
    status: CallStatus
    exit_code: int
    output_len: int
    output_preview: str
    rule: str = ""
    changed: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check command and its result."""

    command: str
    exit_code: int
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorResponse:
    """The response of a step; failures are responses too, never exceptions.

    `surprise` describes how the result differs from the plan; `shortfall` describes what a partial result lacks;
    `verified` is None without checks; `hint` suggests a fix for a failure. `next_questions` were asked and
    not answered.
    """

    task_id: str
    status: StepStatus
    summary: str
    outputs: tuple[StepOutput, ...] = ()
    tool_calls: tuple[CallFact, ...] = ()
    next_questions: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    turns: int = 0
    exit_code: int = 0
    hint: str = ""
    surprise: str = ""
    shortfall: str = ""
    checks: tuple[Check, ...] = ()
    verified: bool | None = None

    @property
    def text(self) -> str:
        """The complete text of the step's answer."""
        return "\n".join(output.content for output in self.outputs if output.type == "text")
