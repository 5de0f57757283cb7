"""Verification of steps by their check commands, and steps that are a single tool call."""

from dataclasses import replace

from agent.execution.step.context import Conversation
from agent.execution.step.step_result import StepResult
from agent.execution.step.step_status import answer_status
from agent.execution.step.tool_calls import ToolCallRunner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageAdded, WarningRaised
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import CheckAuthor, PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CHECK_TOOL, Check
from agent.vocabulary.unfinished import UNKNOWN_CALL, UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import CallStatus

# How often a failed check is reported to the model for another attempt.
MAX_CHECKS = 2
_REFUSED = frozenset({"denied", "deferred", "blocked"})


# A check that runs longer before the step is not compared.
_BEFORE_LIMIT_S = 10.0
_NOT_RUN = {126: "it is not executable", 127: "a program is missing"}
_PLACEHOLDER = lazy_pattern(
    r"<[A-Za-z][\w.-]*>|<(?:your|the|name|path|file)\b[^<>|&;]*>|(?<![$\w'\"\\{])\{[A-Za-z_]+\}(?!\w)|\bpath/to\b"
    r"|\b(?:your|my|some)[_-](?:\w+)|\b(?:YOUR|PLACEHOLDER)\w*|…|(?<!\S)\.\.\.(?!\S)"
)
_SINGLE_QUOTED = lazy_pattern(r"'[^']*'")


def why_unusable(command: str) -> str:
    """Return why a check written by a model can never work; empty if it may."""
    # Braces of awk, sed or jq are not placeholders.
    if found := _PLACEHOLDER.search(_SINGLE_QUOTED.sub("''", command)):
        return f"{found[0]} is a placeholder"
    from tooling.safety.shell.parse import parse

    return "it is not valid shell" if parse(command).has_error else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheck:
    """The check of a step; `before` is its result before the step's work, if known."""

    command: str
    author: CheckAuthor = "user"
    before: tuple[int, str] | None = None

    def failed_before(self, check: Check) -> bool:
        """Whether the check failed the same way before the work, so that it says nothing about the work."""
        return self.before is not None and self.before == _outcome(check.exit_code, check.output)


def _outcome(exit_code: int, output: str) -> tuple[int, str]:
    from agent.model.recorded.normal_form import normalize_text

    return exit_code, normalize_text(output)


class Verifier:
    """Runs check commands like all others: same judge, approvals and sandbox.

    A check given by the user decides about its step. A check written by a model counts only if it could run and if the
    step could change its result; otherwise it is dropped with a warning.
    """

    def __init__(self, *, calls: ToolCallRunner, channel: Channel) -> None:
        self._calls = calls
        self._channel = channel

    async def prepare(self, step: PlanStep, ctx: ExecCtx, *, is_resumed: bool) -> StepCheck:
        """Return the check of a step that is about to start; try a model's check once, unless it needs approval."""
        check = StepCheck(command=step.verify, author=step.verify_by)
        if not step.verify or step.verify_by == "user":
            return check
        if why := why_unusable(step.verify):
            await self._warn_dropped(check, why, ctx)
            return replace(check, command="")
        if is_resumed or not ctx.may_use(CHECK_TOOL):
            return check
        arguments = {"command": step.verify, "timeout_s": _BEFORE_LIMIT_S}
        call = ToolCall(id=f"{ctx.step_id}.check.0", name=CHECK_TOOL, arguments=arguments)
        tried = await self._calls.call_unasked(call, ctx)
        if tried is None or tried.is_ok or tried.meta.status != "error":
            return check
        return replace(check, before=_outcome(tried.exit_code, tried.content))

    async def check(self, check: StepCheck, result: StepResult, conversation: Conversation, ctx: ExecCtx) -> StepResult:
        """Run the check and return the updated result of the step."""
        command = check.command
        call = ToolCall(
            id=f"{ctx.step_id}.check.{len(conversation.checks) + 1}", name=CHECK_TOOL, arguments={"command": command}
        )
        call_result = await self._calls.call(call, conversation, ctx)
        is_refused = call_result.meta.status in _REFUSED or not ctx.may_use(CHECK_TOOL)
        if check.author == "model" and (is_refused or call_result.exit_code in _NOT_RUN):
            why = "it was refused" if is_refused else _NOT_RUN[call_result.exit_code]
            await self._warn_dropped(check, why, ctx)
            return result
        if is_refused:
            return replace(result, status="blocked", reason=f"The check could not be run. {call_result.content}")
        conversation.checks.append(Check(command=command, exit_code=call_result.exit_code, output=call_result.content))
        if call_result.is_ok:
            # Earlier failures no longer matter; a question that was not answered still does.
            if result.questions:
                return replace(result, exit_code=0, verified=True)
            return replace(result, status="ok", shortfall="", exit_code=0, verified=True)
        reason = f"The check `{command}` failed. {call_result.content}"
        return replace(result, status="error", reason=reason, exit_code=exit_codes.FAILED, verified=False)

    async def conclude(
        self, check: StepCheck, result: StepResult, checked: StepResult, conversation: Conversation, ctx: ExecCtx
    ) -> StepResult:
        """Return the final result: the checked one, or the unchecked one if the check failed the same way before."""
        if checked.verified is not False or not check.failed_before(conversation.checks[-1]):
            return checked
        await self._warn_dropped(check, "it fails in the same way as before the step", ctx)
        conversation.checks.clear()
        # A step whose only failed call was the dropped check did all of its work.
        others = [fact for fact in conversation.facts if dict(fact.args) != {"command": check.command}]
        if result.status != "partial" or result.exit_code:
            return result
        ending = answer_status(others, self._calls.effect_of)
        return replace(result, status=ending.status, shortfall=ending.shortfall)

    async def _warn_dropped(self, check: StepCheck, why: str, ctx: ExecCtx) -> None:
        warning = f"step {ctx.step_id}: its check `{check.command}` does not count: {why}"
        await self._channel.publish(WarningRaised(message=warning), step_id=ctx.step_id, attempt=ctx.attempt)

    async def report_failure(self, conversation: Conversation, ctx: ExecCtx) -> None:
        """Report the failed check to the model."""
        check = conversation.checks[-1]
        text = (
            f"The work was checked with `{check.command}`, and the check failed:\n{check.output}\n"
            "Mend what is wrong, then reply with the result as before."
        )
        conversation.messages.append(Message(role="user", content=text))
        event = MessageAdded(role="user", content=text)
        await self._channel.publish(event, step_id=ctx.step_id, attempt=ctx.attempt)


_STATUS: dict[CallStatus, StepStatus] = {
    "ok": "ok",
    "error": "error",
    "denied": "blocked",
    "deferred": "blocked",
    "blocked": "blocked",
    "timeout": "timeout",
    "cancelled": "cancelled",
}
_DONE_BEFORE = "This was done before the run was cut off."


class ToolStepRunner:
    """Runs a `tool` step; never repeats a call that may have had an effect."""

    def __init__(self, *, calls: ToolCallRunner, verifier: Verifier) -> None:
        self._calls = calls
        self._verifier = verifier

    async def run(
        self,
        step: PlanStep,
        check: StepCheck,
        conversation: Conversation,
        ctx: ExecCtx,
        *,
        check_ctx: ExecCtx,
        unfinished: UnfinishedStep | None,
    ) -> StepResult:
        """Make the call and check it, or reuse its result from before the interruption."""
        if unfinished and any(message.content == UNKNOWN_CALL for message in unfinished.messages):
            result = await self._check_unknown_call(check, conversation, check_ctx)
            if result:
                return result
        if unfinished and unfinished.facts:
            conversation.facts += unfinished.facts
            text = unfinished.messages[-1].content if unfinished.messages else ""
            result = _step_result(unfinished.facts[-1].status, text)
        else:
            call = ToolCall(id=f"{step.id}.call", name=step.tool, arguments=step.args)
            call_result = await self._calls.call(call, conversation, ctx)
            result = _step_result(call_result.meta.status, call_result.content)
        if not check.command or result.status != "ok":
            return result
        checked = await self._verifier.check(check, result, conversation, check_ctx)
        return await self._verifier.conclude(check, result, checked, conversation, check_ctx)

    async def _check_unknown_call(
        self, check: StepCheck, conversation: Conversation, ctx: ExecCtx
    ) -> StepResult | None:
        """Find out from the check whether a call had its effect; return None if it did not."""
        unknown = StepResult(status="error", reason=UNKNOWN_CALL, exit_code=exit_codes.TOOL_FAILED)
        if not check.command:
            return unknown
        checked = await self._verifier.check(check, StepResult(status="ok", text=_DONE_BEFORE), conversation, ctx)
        if checked.verified is None and check.author == "model":
            # It did not run, so it proves nothing.
            return unknown
        return None if checked.verified is False else checked


def _step_result(called: CallStatus, text: str) -> StepResult:
    status = _STATUS[called]
    # The output of a failed command is the step's output too; the summary is only its beginning.
    return StepResult(status=status, text=text, exit_code=exit_codes.TOOL_FAILED if status == "error" else 0)
