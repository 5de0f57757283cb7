"""The state of an interrupted run, as restored from its log for resuming."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.effects import EffectRecord
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.step import CallFact, ExecutorResponse
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image

_SIDE_EFFECTS: frozenset[Effect] = frozenset({"write", "execute", "external"})

# Results for calls that an interrupted run left without one: the first never ran, the second may have run.
CANCELLED_CALL = "Cancelled: the run was stopped before this call was run."
UNKNOWN_CALL = (
    "Unknown: the run was stopped while this call ran; it may or may not have had its effect. "
    "Check before doing it again."
)
# The same for a call with an effect outside the workspace: recorded as done, or started and not ended.
DONE_CALL = "Done: this had its effect before the run was stopped; its output was lost. Do not do it again."
UNKNOWN_EFFECT = (
    "Unknown: the run was stopped while this call ran; it may or may not have had its effect outside the workspace. "
    "It is not repeated without the user's consent: check what can be checked, and report it as unknown."
)
# Marks a truncated reply, and requests the rest of it on resume.
INTERRUPTED_REPLY = "[interrupted]"
GO_ON = "You were interrupted. Go on."
# The first message on resume to a model that was denied something in a finished run.
TRY_AGAIN = (
    "The work goes on. What was refused before may be allowed now: do what is still missing, "
    "then reply with the result."
)
# The same to a lead that has answered although a part of its work had failed.
FINISH = "The work goes on: do what failed or is still missing, then reply with the result."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedStep:
    """A started step without a result: its conversation after the opening, valid for every provider.

    Calls without a result get CANCELLED_CALL, or UNKNOWN_CALL if they may have had an effect. A `tool` step has no
    conversation: its messages are at most the result of its call, and its facts are empty unless the call ended.
    `open_calls` are calls whose delegated steps have not all ended: they are repeated, and reuse finished results.
    """

    messages: tuple[Message, ...] = ()
    open_calls: tuple[ToolCall, ...] = ()
    facts: tuple[CallFact, ...] = ()
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRun:
    """The request, the latest plan and the started steps; `lineage` is the first run of the chain.

    With `is_plan_given` the plan came from a file and is never replanned. `clarifications` counts the answers that led
    to a new plan. `schema` is the output schema. `model` is the model of the first run: cached results are stored under
    its name, even if another model resumes. `answer` is set if only the work after the final answer was interrupted.
    `effects` are those outside the workspace. `conversation` is the lead's, from the session's first request on;
    `reported` are the steps whose results it knows. `run_id` is the last run of the chain, and `has_ended` whether it
    reported a result.
    """

    run_id: str
    lineage: str
    request: str
    has_ended: bool = False
    context: str = ""
    schema: str = ""
    model: str = ""
    plan: tuple[PlanStep, ...] = ()
    is_plan_complete: bool = False
    is_plan_given: bool = False
    steps: Mapping[str, UnfinishedStep] = field(default_factory=dict)
    replans: int = 0
    clarifications: int = 0
    effects: Mapping[str, EffectRecord] = field(default_factory=dict)
    answer: str = ""
    images: tuple[Image, ...] = ()
    conversation: tuple[Message, ...] = ()
    reported: Mapping[str, ExecutorResponse] = field(default_factory=dict)

    @property
    def is_led(self) -> bool:
        """Whether a lead worked on the request."""
        return any(step.id == LEAD for step in self.plan)


def missing_result(effect: Effect | None, *, had_started: bool) -> str:
    """Return the result of an interrupted call: cancelled only if it certainly had no effect."""
    return UNKNOWN_CALL if had_started and effect in _SIDE_EFFECTS else CANCELLED_CALL
