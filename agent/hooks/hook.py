"""The hooks of a run: `Hook` observes it, `GuardHook` also decides."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from agent.protocol.envelope import Envelope
from agent.protocol.events import CallMade
from agent.vocabulary.task_config import TaskConfig
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject

DEFAULT_TIMEOUT_S = 10.0
DEFAULT_GUARD_TIMEOUT_S = 60.0
Permission: TypeAlias = Literal["pass", "allow", "ask", "deny"]


class HookFailed(Exception):
    """A hook failed; the message completes "the hook NAME …"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The agent at one of its turns: the step, the text of the model, and the calls it requests."""

    session_id: str
    run_id: str
    step_id: str
    text: str = ""
    tool_calls: tuple[CallMade, ...] = ()
    usage: Usage | None = None


class Hook:
    """Observes a run; override the methods you need.

    Hooks are called in the order of registration, `after_execution` in reverse order. An exception of a hook
    is reported as a warning, and so is a hook that exceeds `timeout_s`; the run and the other hooks continue.
    Turns are counted over the whole run, from 1.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S

    @property
    def name(self) -> str:
        """The name of the hook in messages and listings."""
        return type(self).__name__

    async def before_execution(self, config: TaskConfig) -> None:
        """Called once, before the workspace is prepared."""

    async def on_agent_turn(self, turn: int, state: AgentState) -> None:
        """Called after each reply of the model."""

    async def on_tool_call(self, turn: int, tool_name: str, tool_input: JsonObject, tool_output: str) -> None:
        """Called after each tool call; `tool_output` is the text that the model reads."""

    async def on_response(self, turn: int, response: str) -> None:
        """Called with the text of a turn, after its tool calls."""

    async def after_execution(self, success: bool, error: str | None) -> None:  # noqa: FBT001 (a published signature)
        """Called exactly once when the run ends; `error` is the reason if it did not succeed."""


class EventHook(Hook):
    """A hook that also receives every event of the run."""

    async def on_event(self, envelope: Envelope) -> None:
        """Called with each event, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedCall:
    """A tool call that is decoded but not judged yet; `arguments` are those of the tool."""

    tool: str
    arguments: JsonObject
    cwd: Path
    call_id: str = ""
    step_id: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """Decision of a guard about a call: pass it on, deny it, ask the user, or approve it.

    An approval replaces the user's answer; it does not override blocked actions or deny rules. `reason` is for
    the model if the call is denied, and for the user if they are asked. `arguments`, if given, replace those of the
    call. `context` is added to its result.
    """

    permission: Permission = "pass"
    reason: str = ""
    arguments: Mapping[str, object] | None = None
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDecision:
    """Decision of a guard about a request: a reason to refuse it, or context to add to it."""

    refusal: str = ""
    context: str = ""


class GuardHook(Hook):
    """A hook that decides about actions in advance. If `check_call` raises or times out, the call is denied."""

    guard_timeout_s: float = DEFAULT_GUARD_TIMEOUT_S
    # This guard may only be stricter than the rules: its approvals are ignored.
    is_restricted: bool = False

    async def check_prompt(self, prompt: str) -> PromptDecision:
        """Decide about the user's request."""
        return PromptDecision()

    async def check_call(self, call: GuardedCall) -> CallDecision:
        """Decide about a tool call before it is judged and run."""
        return CallDecision()

    async def comment_on_call(self, call: GuardedCall, output: str) -> str:
        """Return a remark about a successful call, which the model reads below its result."""
        return ""

    async def check_answer(self, answer: str, *, is_repeated: bool) -> str:
        """Return why the agent must continue after this answer; `is_repeated` if a hook already made it continue."""
        return ""
