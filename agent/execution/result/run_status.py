"""The status of a run: its subtype, exit code and reason, decided from its steps and its answer.

Success is all or nothing: every counted step is `ok`, nothing was refused, every question was answered, and there
is an answer. Otherwise the first problem in this order decides: a refused call, a step's exit code, a failed step, a
step that is only partial or a question without an answer, an empty answer, a missing check.
"""

from collections.abc import Sequence

from agent.execution.graph.ready_queue import IN_CYCLE
from agent.execution.step.step_result import call_subject, collect_refusals, refused_calls
from agent.execution.step.step_status import unanswered
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import LEAD
from agent.vocabulary.status import INCOMPLETE, Subtype, is_success
from agent.vocabulary.step import ExecutorResponse
from tooling.approvals.policy import WOULD_ALLOW
from tooling.contract.fast_dataclass import dataclass
from tooling.permission import TO_THE_MODEL

NO_ANSWER = "no answer was produced"
NO_CHECKS = "nothing was verified: no step had a check"
CHECK_FAILED = "a check failed"
ALLOW_ON_RESUME = "give that flag to the command that resumes the run, too"
ASK_IN_TERMINAL = "put the answer into the task, or resume in a terminal, where the question can be asked"
_REASON_CHARS = 400
# If several steps failed for different reasons, the first of these decides.
_PRECEDENCE = (
    exit_codes.BUDGET,
    exit_codes.APPROVAL,
    exit_codes.NO_KEY,
    exit_codes.BAD_INPUT,
    exit_codes.BAD_CONFIG,
    exit_codes.RETRY_LATER,
    exit_codes.LIMIT,
    exit_codes.TOOL_FAILED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Subtype and exit code of a run, the reason of a failure, and a hint.

    Without `can_resume` the run would end the same way again.
    """

    subtype: Subtype
    exit_code: int
    error: str | None = None
    hint: str = ""
    can_resume: bool = True


def run_status(
    responses: Sequence[ExecutorResponse],
    answer: str,
    *,
    replaced: Sequence[ExecutorResponse] = (),
    require_verified: bool = False,
) -> RunStatus:
    """Decide the status of a run from the counted `responses`; `replaced` ones count only for their questions."""
    exit_code = _step_exit_code(responses)
    if exit_code != exit_codes.OK:
        subtype = exit_codes.SUBTYPES[exit_code]
        if exit_code == exit_codes.FAILED and any(is_success(response.status) for response in responses):
            subtype = "partial"
        error = failure_reason(responses, exit_code)
        hint = _question_hint(responses) or _fault_hint(responses, exit_code)
        hint = ALLOW_ON_RESUME if WOULD_ALLOW in error else hint
        can_resume = not _is_permanent(responses)
        return RunStatus(
            subtype=subtype, exit_code=exit_code, error=error, hint=hint if can_resume else "", can_resume=can_resume
        )
    if questions := [question for response in (*responses, *replaced) for question in response.next_questions]:
        return _partial(unanswered(questions[-1]), ASK_IN_TERMINAL)
    for response in responses:
        if response.status == "partial":
            start = INCOMPLETE if response.task_id == LEAD else f"{response.task_id} is incomplete: "
            return _partial(f"{start}{response.shortfall or response.summary}", response.hint)
    if not answer.strip():
        return RunStatus(subtype="error_task", exit_code=exit_codes.FAILED, error=NO_ANSWER)
    if require_verified and (verified := combine_verified(responses)) is not True:
        why = NO_CHECKS if verified is None else CHECK_FAILED
        return RunStatus(subtype="error_unverified", exit_code=exit_codes.UNVERIFIED, error=why)
    return RunStatus(subtype="success", exit_code=exit_codes.OK)


def _partial(error: str, hint: str = "") -> RunStatus:
    return RunStatus(subtype="partial", exit_code=exit_codes.FAILED, error=error, hint=hint)


def _is_permanent(responses: Sequence[ExecutorResponse]) -> bool:
    """Whether no action of the user can make the run succeed: a blocked call, or steps that wait for each other."""
    facts = [fact for response in responses for fact in refused_calls(response.tool_calls)]
    is_in_cycle = any(response.status == "skipped" and IN_CYCLE in response.summary for response in responses)
    return is_in_cycle or any(fact.status == "blocked" for fact in facts)


def _question_hint(responses: Sequence[ExecutorResponse]) -> str:
    """Return how to answer if unanswered questions are the only problem."""
    failed = {response.status for response in responses if not is_success(response.status)}
    return ASK_IN_TERMINAL if "needs_input" in failed and failed <= {"needs_input", "skipped"} else ""


def _step_exit_code(responses: Sequence[ExecutorResponse]) -> int:
    """Return the exit code of refused calls and failed steps; OK if there are none."""
    refused = collect_refusals(responses)
    if refused.denied or refused.deferred:
        return exit_codes.APPROVAL
    codes = {response.exit_code for response in responses if response.exit_code}
    for code in _PRECEDENCE:
        if code in codes:
            return code
    failed = {response.status for response in responses if not is_success(response.status)}
    if "timeout" in failed and failed <= {"timeout", "skipped"}:
        return exit_codes.TIMED_OUT
    return exit_codes.FAILED if failed else exit_codes.OK


def combine_verified(responses: Sequence[ExecutorResponse]) -> bool | None:
    """Return False if any check failed, True if some passed, None if there were none."""
    verdicts = {response.verified for response in responses}
    return False if False in verdicts else True if True in verdicts else None


def failure_reason(responses: Sequence[ExecutorResponse], exit_code: int) -> str:
    """Return a one-sentence reason for the exit code of a failed run."""
    if exit_code == exit_codes.APPROVAL:
        return _refusal_reason(responses)
    response = _deciding_response(responses, exit_code)
    if response is None:
        return NO_ANSWER
    return unanswered(response.summary) if response.status == "needs_input" else response.summary


def _fault_hint(responses: Sequence[ExecutorResponse], exit_code: int) -> str:
    """Return the hint for the fault of the deciding step."""
    response = None if exit_code == exit_codes.APPROVAL else _deciding_response(responses, exit_code)
    return response.hint if response else ""


def _deciding_response(responses: Sequence[ExecutorResponse], exit_code: int) -> ExecutorResponse | None:
    """Return the response that gives a failed run its exit code, or else the first that failed."""
    failed = [response for response in responses if not is_success(response.status)]
    # A skipped step only repeats the failure that caused it.
    failed.sort(key=lambda response: response.status == "skipped")
    deciding = [response for response in responses if response.exit_code == exit_code]
    return next(iter((*deciding, *failed)), None)


def _refusal_reason(responses: Sequence[ExecutorResponse]) -> str:
    """Return the first refused call with its explanation, and the names of the others."""
    refused = {call_subject(fact): fact for response in responses for fact in refused_calls(response.tool_calls)}
    first, *others = refused
    explanation, _, _ = refused[first].output_preview.partition("\n")
    tool = f"{refused[first].tool} " if first == refused[first].args.get("path") else ""
    why = explanation.removesuffix(TO_THE_MODEL)[:_REASON_CHARS]
    return f"{tool}{first}: {why}" + (f" Also: {', '.join(others)}." if others else "")
