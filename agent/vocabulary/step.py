"""One step asked for, one step answered, and the rights it runs with."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.status import StepStatus
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CallStatus

# The tool that runs a step's check.
CHECK_TOOL = "run_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorProfile:
    """Rights and limits of a step; `allowed_tools` None means every registered tool.

    `may_check` says whether its check may be run: by the profile, whatever the step itself was narrowed to.
    """

    name: str = "default"
    allowed_tools: tuple[str, ...] | None = None
    timeout_ms: int = 600_000
    max_retries: int = 2
    max_turns: int = 50
    may_check: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRequest:
    """One step to run, with everything its worker may know."""

    task_id: str
    goal: str
    context: str = ""
    expected_outputs: str | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """Something a step made: text, or a file by its path."""

    type: str
    content: str = ""
    path: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFact:
    """A tool call that happened, as evidence."""

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
        """Say whether the call did what was asked."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A command that was run to see whether a step did what it should."""

    command: str
    exit_code: int
    output: str = ""

    @property
    def passed(self) -> bool:
        """Say whether the check found what it should."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorResponse:
    """How a step ended; never an exception.

    `surprise` says in what the result differs from what the plan counted on; `verified` is None without checks.
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
    surprise: str = ""
    checks: tuple[Check, ...] = ()
    verified: bool | None = None

    @property
    def text(self) -> str:
        """Return the step's whole text answer."""
        return "\n".join(output.content for output in self.outputs if output.type == "text")
