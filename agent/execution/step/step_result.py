"""How the work on a step ended, and the response that tells of it."""

from pathlib import PurePath

from agent.execution.step.context import Conversation
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

SUMMARY_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An answer (`text`), or the reason why there is none; `surprise` says what the plan did not count on."""

    status: StepStatus
    text: str = ""
    reason: str = ""
    exit_code: int = 0
    surprise: str = ""
    verified: bool | None = None
    questions: tuple[str, ...] = ()


def response_of(task_id: str, ending: Ending, talk: Conversation, *, usage: Usage, attempts: int) -> ExecutorResponse:
    """Return the response of a step that ended so, with everything that was gathered on the way."""
    return ExecutorResponse(
        task_id=task_id,
        status=ending.status,
        summary=ending.reason or _summary(ending.text),
        outputs=_outputs(ending, talk),
        tool_calls=tuple(talk.facts),
        next_questions=ending.questions,
        usage=usage,
        attempts=attempts,
        turns=talk.turns,
        exit_code=ending.exit_code,
        surprise=ending.surprise,
        checks=tuple(talk.checks),
        verified=ending.verified,
    )


def _outputs(ending: Ending, talk: Conversation) -> tuple[StepOutput, ...]:
    text = (StepOutput(type="text", content=ending.text),) if ending.text else ()
    return (*text, *(StepOutput(type="file", path=path, name=PurePath(path).name) for path in talk.artifacts))


def _summary(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else text[:SUMMARY_CHARS] + " …"
