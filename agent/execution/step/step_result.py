"""How the work on a step ended, and the response that tells of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from agent.execution.step.context import Conversation
from agent.protocol.channel import LogWriteError
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus, Subtype, is_success
from agent.vocabulary.step import CallFact, ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.safety.secrets.redact import MASK

SUMMARY_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """An answer (`text`), or the reason why there is none; `surprise` says what the plan did not count on."""

    status: StepStatus
    text: str = ""
    reason: str = ""
    exit_code: int = 0
    surprise: str = ""
    verified: bool | None = None
    questions: tuple[str, ...] = ()


class StepCancelled(asyncio.CancelledError):
    """The run was interrupted while a step was running; `response` is how the step ended, already published."""

    def __init__(self, response: ExecutorResponse) -> None:
        super().__init__()
        self.response = response


class StepNotSaved(LogWriteError):
    """The result of a step could not be written to disk; `response` says that it does not count."""

    def __init__(self, error: LogWriteError, response: ExecutorResponse) -> None:
        super().__init__(error.message, error.hint)
        self.response = response


def build_response(
    task_id: str, ending: StepResult, talk: Conversation, *, usage: Usage, attempts: int
) -> ExecutorResponse:
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


def _outputs(ending: StepResult, talk: Conversation) -> tuple[StepOutput, ...]:
    text = (StepOutput(type="text", content=ending.text),) if ending.text else ()
    return (*text, *(StepOutput(type="file", path=path, name=PurePath(path).name) for path in talk.artifacts))


def _summary(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else text[:SUMMARY_CHARS] + " …"


def question_limit_response(step: PlanStep) -> ExecutorResponse:
    """Return how a question ends that is one too many."""
    question = step.ask_question or step.instruction
    return ExecutorResponse(
        task_id=step.id,
        status="needs_input",
        summary=question,
        next_questions=(question,),
        exit_code=exit_codes.FAILED,
    )


def has_masked_secret(step: PlanStep) -> bool:
    """Say whether what a step would run had a secret in it that the log masks."""
    return MASK in step.verify or (step.type == "tool" and MASK in str(step.args))


def masked_secret_response(step: PlanStep) -> ExecutorResponse:
    """Return how a step ends that would run the mask instead of the secret."""
    summary = "What it runs holds a secret, and no log keeps secrets: start it anew with `agent run`."
    return ExecutorResponse(task_id=step.id, status="error", summary=summary, exit_code=exit_codes.FAILED)


def internal_error_response(step: PlanStep, error: Exception) -> ExecutorResponse:
    """Return how a step ends that could not even begin."""
    return ExecutorResponse(
        task_id=step.id, status="error", summary=f"internal error: {error!r}", exit_code=exit_codes.FAILED
    )


def unsaved_response(response: ExecutorResponse) -> ExecutorResponse:
    """Return how a step ends whose end could not be kept: it may not be called done."""
    return replace(response, status="cancelled", summary="Its end could not be kept.")


_REFUSED = frozenset({"denied", "blocked"})
_REASON_CHARS = 400
# When several steps failed for different reasons, the first of these decides.
_PRECEDENCE = (
    exit_codes.BUDGET,
    exit_codes.NO_KEY,
    exit_codes.BAD_CONFIG,
    exit_codes.RETRY_LATER,
    exit_codes.LIMIT,
    exit_codes.TOOL_FAILED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Calls that were not allowed, in the words of the person who must decide."""

    denied: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()


def collect_refusals(responses: Sequence[ExecutorResponse]) -> Refusals:
    """Collect what was denied, blocked or put off, and not done later after all."""
    refused = [fact for response in responses for fact in _refused_in(response.tool_calls)]
    return Refusals(
        denied=tuple(dict.fromkeys(_subject(fact) for fact in refused if fact.status in _REFUSED)),
        deferred=tuple(dict.fromkeys(_subject(fact) for fact in refused if fact.status == "deferred")),
    )


def is_final(response: ExecutorResponse) -> bool:
    """Say whether a result is the step's for good; a run that goes on takes up what a limit or a no cut short."""
    refused = collect_refusals([response])
    return is_success(response.status) and not (response.exit_code or refused.denied or refused.deferred)


def _refused_in(facts: Sequence[CallFact]) -> list[CallFact]:
    """Return the calls that were refused in a step; one that was allowed later is none of them."""
    refused: dict[tuple[str, str], CallFact] = {}
    for fact in facts:
        if fact.status in _REFUSED or fact.status == "deferred":
            refused[fact.tool, _subject(fact)] = fact
        elif fact.status != "cancelled":
            refused.pop((fact.tool, _subject(fact)), None)
    return list(refused.values())


def combine_verified(responses: Sequence[ExecutorResponse]) -> bool | None:
    """Return whether checks passed: False when any step's failed, None when there was none."""
    verdicts = {response.verified for response in responses}
    return False if False in verdicts else True if True in verdicts else None


def failure_reason(responses: Sequence[ExecutorResponse], exit_code: int) -> str | None:
    """Return why a run ended with an exit code, for the person who reads nothing else."""
    if exit_code == exit_codes.OK:
        return None
    if exit_code == exit_codes.APPROVAL:
        return _refusal_reason(responses)
    failed = [response for response in responses if not is_success(response.status)]
    # A step that was skipped only tells of the one that made it so.
    failed.sort(key=lambda response: response.status == "skipped")
    deciding = [response for response in responses if response.exit_code == exit_code]
    for response in (*deciding, *failed):
        is_question = response.status == "needs_input"
        return f"the question stayed open: {response.summary}" if is_question else response.summary
    return "there is no answer"


def _refusal_reason(responses: Sequence[ExecutorResponse]) -> str:
    """Return what was refused first, in the words that also say what would allow it, and what else was."""
    refused = {_subject(fact): fact for response in responses for fact in _refused_in(response.tool_calls)}
    first, *others = refused
    words, _, _ = refused[first].output_preview.partition("\n")
    return f"{first}: {words[:_REASON_CHARS]}" + (f" Also: {', '.join(others)}." if others else "")


def _subject(fact: CallFact) -> str:
    return str(fact.args.get("command") or fact.args.get("path") or fact.tool)


def exit_status(responses: Sequence[ExecutorResponse], answer: str) -> tuple[Subtype, int]:
    """Return subtype and exit code; a run in which something was refused, failed or left out is no success."""
    refused = collect_refusals(responses)
    if refused.denied or refused.deferred:
        return "error_approval", exit_codes.APPROVAL
    codes = {response.exit_code for response in responses if response.exit_code}
    for code in _PRECEDENCE:
        if code in codes:
            return exit_codes.SUBTYPES[code], code
    failed = [response for response in responses if not is_success(response.status)]
    if failed:
        statuses = {response.status for response in failed}
        if "timeout" in statuses and statuses <= {"timeout", "skipped"}:
            return "error_timeout", exit_codes.TIMED_OUT
        return ("partial" if len(failed) < len(responses) else "error_task"), exit_codes.FAILED
    return ("success", exit_codes.OK) if answer.strip() else ("error_task", exit_codes.FAILED)
