"""Checks: the command of a step that succeeds only when the step did what it should."""

from dataclasses import replace

from agent.execution.step.context import Conversation
from agent.execution.step.step_result import StepResult
from agent.execution.step.tool_calls import ToolCallRunner
from agent.protocol.channel import Channel
from agent.protocol.events import MessageSaid
from agent.vocabulary import exit_codes
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CHECK_TOOL, Check
from agent.vocabulary.unfinished import UNKNOWN_CALL, UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.result import CallStatus

# How often a model hears of a failed check and may try to mend its work.
MAX_CHECKS = 2
_REFUSED = frozenset({"denied", "deferred", "blocked"})


class Verifier:
    """Runs the checks of steps on the one road of all commands: same judge, same approvals, same box."""

    def __init__(self, *, calls: ToolCallRunner, channel: Channel) -> None:
        self._calls = calls
        self._channel = channel

    async def check(self, command: str, ending: StepResult, talk: Conversation, ctx: ExecCtx) -> StepResult:
        """Return how the step ends after its check."""
        call = ToolCall(
            id=f"{ctx.step_id}.check.{len(talk.checks) + 1}", name=CHECK_TOOL, arguments={"command": command}
        )
        result = await self._calls.call(call, talk, ctx)
        if result.meta.status in _REFUSED or not ctx.may_use(CHECK_TOOL):
            return replace(ending, status="blocked", reason=f"The check could not be run. {result.content}")
        talk.checks.append(Check(command=command, exit_code=result.exit_code, output=result.content))
        if result.is_ok:
            # What went wrong on the way does not matter any more.
            return replace(ending, status="ok", exit_code=0, verified=True)
        reason = f"The check `{command}` failed. {result.content}"
        return replace(ending, status="error", reason=reason, exit_code=exit_codes.FAILED, verified=False)

    async def report_failure(self, talk: Conversation, ctx: ExecCtx) -> None:
        """Let the model know of the failed check."""
        check = talk.checks[-1]
        text = (
            f"The work was checked with `{check.command}`, and the check failed:\n{check.output}\n"
            "Mend what is wrong, then reply with the result as before."
        )
        talk.messages.append(Message(role="user", content=text))
        said = MessageSaid(role="user", content=text)
        await self._channel.publish(said, step_id=ctx.step_id, attempt=ctx.attempt)


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
    """Makes the one call of a step, and never again a call that may have had its effect."""

    def __init__(self, *, calls: ToolCallRunner, verifier: Verifier) -> None:
        self._calls = calls
        self._verifier = verifier

    async def run(
        self, step: PlanStep, talk: Conversation, ctx: ExecCtx, *, check_ctx: ExecCtx, unfinished: UnfinishedStep | None
    ) -> StepResult:
        """Make the call and check it, or take what came of it before the run was cut off."""
        if unfinished and any(message.content == UNKNOWN_CALL for message in unfinished.messages):
            ending = await self._check_unknown_call(step, talk, check_ctx)
            if ending:
                return ending
        if unfinished and unfinished.facts:
            talk.facts += unfinished.facts
            text = unfinished.messages[-1].content if unfinished.messages else ""
            ending = _step_result(unfinished.facts[-1].status, text)
        else:
            call = ToolCall(id=f"{step.id}.call", name=step.tool, arguments=step.args)
            result = await self._calls.call(call, talk, ctx)
            ending = _step_result(result.meta.status, result.content)
        if not step.verify or ending.status != "ok":
            return ending
        return await self._verifier.check(step.verify, ending, talk, check_ctx)

    async def _check_unknown_call(self, step: PlanStep, talk: Conversation, ctx: ExecCtx) -> StepResult | None:
        """Find out whether a call had its effect: only its check can tell. None when it certainly had not."""
        if not step.verify:
            return StepResult(status="error", reason=UNKNOWN_CALL, exit_code=exit_codes.TOOL_FAILED)
        checked = await self._verifier.check(step.verify, StepResult(status="ok", text=_DONE_BEFORE), talk, ctx)
        return None if checked.verified is False else checked


def _step_result(called: CallStatus, text: str) -> StepResult:
    status = _STATUS[called]
    # What a failing command said is the step's output too; its summary is only the beginning.
    return StepResult(status=status, text=text, exit_code=exit_codes.TOOL_FAILED if status == "error" else 0)
