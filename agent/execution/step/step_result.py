"""The result of a step, the response built from it, and the calls that were refused in it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from agent.execution.step.context import Conversation
from agent.protocol.channel import LogWriteError
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact, ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.safety.secrets.redact import MASK

SUMMARY_CHARS = 400
NOT_SAVED = "The step's result could not be saved."
MASKED_SECRET = "The step's command contains a secret, which the log does not store; start a new run with `agent run`."


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """An answer (`text`) or the reason why there is none; `surprise` is what the plan did not expect.

    `shortfall` is what a partial answer lacks. `hint` suggests a fix for the reason.
    """

    status: StepStatus
    text: str = ""
    reason: str = ""
    hint: str = ""
    exit_code: int = 0
    surprise: str = ""
    shortfall: str = ""
    verified: bool | None = None
    questions: tuple[str, ...] = ()


class StepCancelled(asyncio.CancelledError):
    """The run was interrupted while a step was running; `response` is already published."""

    def __init__(self, response: ExecutorResponse) -> None:
        super().__init__()
        self.response = response


class StepNotSaved(LogWriteError):
    """The result of a step could not be written to disk; `response` marks it as not done."""

    def __init__(self, error: LogWriteError, response: ExecutorResponse) -> None:
        super().__init__(error.message, error.hint)
        self.response = response


def build_response(
    task_id: str, result: StepResult, conversation: Conversation, *, usage: Usage, attempts: int
) -> ExecutorResponse:
    """Return the response for a result, with the evidence from its conversation."""
    return ExecutorResponse(
        task_id=task_id,
        status=result.status,
        summary=result.reason or _summary(result.text),
        outputs=_outputs(result, conversation),
        tool_calls=tuple(conversation.facts),
        next_questions=result.questions,
        usage=usage,
        attempts=attempts,
        turns=conversation.turns,
        exit_code=result.exit_code,
        hint=result.hint,
        surprise=result.surprise,
        shortfall=result.shortfall,
        checks=tuple(conversation.checks),
        verified=result.verified,
    )


def _outputs(result: StepResult, conversation: Conversation) -> tuple[StepOutput, ...]:
    text = (StepOutput(type="text", content=result.text),) if result.text else ()
    return (*text, *(StepOutput(type="file", path=path, name=PurePath(path).name) for path in conversation.artifacts))


def _summary(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else text[:SUMMARY_CHARS] + " …"


def question_limit_response(step: PlanStep) -> ExecutorResponse:
    """Return the response of a question beyond the limit, which is not asked."""
    question = step.ask_question or step.instruction
    return ExecutorResponse(task_id=step.id, status="needs_input", summary=question, exit_code=exit_codes.FAILED)


def declined_response(step: PlanStep, reason: str) -> ExecutorResponse:
    """Return the response of a step whose permissions the user declined."""
    return ExecutorResponse(task_id=step.id, status="blocked", summary=reason, exit_code=exit_codes.APPROVAL)


def has_masked_secret(step: PlanStep) -> bool:
    """Whether a step read from the log would run a command whose secret is masked."""
    return MASK in step.verify or (step.type == "tool" and MASK in str(step.args))


def masked_secret_response(step: PlanStep) -> ExecutorResponse:
    """Return the response of a step that would run the mask instead of the secret."""
    return ExecutorResponse(task_id=step.id, status="error", summary=MASKED_SECRET, exit_code=exit_codes.FAILED)


def internal_error_response(step: PlanStep, error: Exception) -> ExecutorResponse:
    """Return the response of a step that could not be started."""
    return ExecutorResponse(
        task_id=step.id, status="error", summary=f"internal error: {error!r}", exit_code=exit_codes.FAILED
    )


def failed_response(step: PlanStep, error: AgentError) -> ExecutorResponse:
    """Return the response of a step whose folder could not be prepared."""
    return ExecutorResponse(
        task_id=step.id, status="error", summary=error.message, exit_code=error.exit_code, hint=error.hint
    )


def unsaved_response(response: ExecutorResponse) -> ExecutorResponse:
    """Return the response of a step whose result could not be saved: it must not count as done."""
    return replace(response, status="cancelled", summary=NOT_SAVED)


_REFUSED = frozenset({"denied", "blocked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """The commands, paths or tools of calls that were not allowed."""

    denied: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()


def collect_refusals(responses: Sequence[ExecutorResponse]) -> Refusals:
    """Collect the calls that were denied, blocked or deferred and not allowed later."""
    refused = [fact for response in responses for fact in refused_calls(response.tool_calls)]
    return Refusals(
        denied=tuple(dict.fromkeys(call_subject(fact) for fact in refused if fact.status in _REFUSED)),
        deferred=tuple(dict.fromkeys(call_subject(fact) for fact in refused if fact.status == "deferred")),
    )


def is_final(response: ExecutorResponse) -> bool:
    """Whether the result is final, i.e. not re-run on resume."""
    refused = collect_refusals([response])
    return response.status == "ok" and not (response.exit_code or refused.denied or refused.deferred)


def refused_calls(facts: Sequence[CallFact]) -> list[CallFact]:
    """Return the refused calls of a step, without those allowed later."""
    refused: dict[tuple[str, str], CallFact] = {}
    for fact in facts:
        if fact.status in _REFUSED or fact.status == "deferred":
            refused[fact.tool, call_subject(fact)] = fact
        elif fact.status != "cancelled":
            refused.pop((fact.tool, call_subject(fact)), None)
    return list(refused.values())


def call_subject(fact: CallFact) -> str:
    """Return the subject of a call: its command, code, path or tool."""
    return str(fact.args.get("command") or fact.args.get("code") or fact.args.get("path") or fact.tool)
