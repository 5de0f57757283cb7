"""A run that was cut off, as far as its log tells: what another run needs to go on with it."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.message import Message
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import CallFact
from tooling.contract.action import Effect
from tooling.contract.fast_dataclass import dataclass

_SIDE_EFFECTS: frozenset[Effect] = frozenset({"write", "execute"})

# The results of calls that a run left behind without one: the first was certainly not run, the second may have been.
CANCELLED_CALL = "Cancelled: the run was stopped before this call was run."
UNKNOWN_CALL = (
    "Unknown: the run was stopped while this call ran; it may or may not have had its effect. "
    "Check before doing it again."
)
# What a model hears first that was refused something in a run that came to its end.
TRY_AGAIN = (
    "The work goes on. What was refused before may be allowed now: do what is still missing, "
    "then reply with the result."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedStep:
    """A step that had begun and has no result: the conversation after its opening, valid for every provider.

    Calls that were never run have a result that says so; a call that may have had its effect says that nobody knows.
    A `tool` step has no conversation: its messages are at most the result of its call, once that had begun, and its
    facts are empty unless the call had ended.
    """

    messages: tuple[Message, ...] = ()
    facts: tuple[CallFact, ...] = ()
    turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRun:
    """The request, the newest plan, and the steps that had begun; `lineage` is the first run of the chain.

    A plan `is_as_written` when it came from a file: nobody plans it again. `clarifications` counts the answers after
    which the rest was planned again. `schema` is the form the answer must have, `model` the first one that worked on
    it: results are found under its name, whoever goes on. `answer` is the one that was given already, when only what
    comes after an answer was cut off.
    """

    run_id: str
    lineage: str
    request: str
    context: str = ""
    schema: str = ""
    model: str = ""
    plan: tuple[PlanStep, ...] = ()
    is_plan_complete: bool = False
    is_plan_given: bool = False
    steps: Mapping[str, UnfinishedStep] = field(default_factory=dict)
    replans: int = 0
    clarifications: int = 0
    answer: str = ""


def missing_result(effect: Effect | None, *, had_begun: bool) -> str:
    """Return the result of a call that was stopped: only what certainly had no effect may be called cancelled."""
    return UNKNOWN_CALL if had_begun and effect in _SIDE_EFFECTS else CANCELLED_CALL
