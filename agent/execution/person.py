"""The person at the other end: questions and approvals go out as events and come back as commands by id."""

import asyncio
import secrets
from collections.abc import Callable

from agent.protocol.channel import Channel
from agent.protocol.commands import AnswerQuestion, Command, ResolveApproval
from agent.protocol.events import ApprovalRequested, ApprovalResolved, QuestionAnswered, QuestionAsked
from tooling.contract.action import Action, ApprovalAnswer, Approver, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question


class Person:
    """Waits for answers to what was asked; implements the tools' Asker and Approver ports."""

    def __init__(self, *, channel: Channel, is_present: bool) -> None:
        self._channel = channel
        self._is_present = is_present
        self._waiting: dict[str, asyncio.Future[Command]] = {}

    def resolve(self, command: Command) -> bool:
        """Hand an answer to whoever waits for it; False when nobody does (any more)."""
        answer_id = command.approval_id if isinstance(command, ResolveApproval) else command.question_id
        waiting = self._waiting.pop(answer_id, None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(command)
        return True

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        """Put a question; None when nobody is there to answer."""
        question_id = f"q-{secrets.token_hex(4)}"
        asked = QuestionAsked(question_id=question_id, question=question.text, options=question.options)
        waiting = self._expect(question_id) if self._is_present else None
        await self._channel.publish(asked, step_id=ctx.step_id, attempt=ctx.attempt)
        command = await waiting if waiting else None
        answer = command.answer if isinstance(command, AnswerQuestion) else None
        answered = QuestionAnswered(question_id=question_id, answer=answer)
        await self._channel.publish(answered, step_id=ctx.step_id, attempt=ctx.attempt)
        return answer

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Wait for the decision on an approval that the witness has made known."""
        command = await self._expect(approval_id(ctx))
        assert isinstance(command, ResolveApproval)
        rule = action.subject if command.scope == "run" else ""
        return ApprovalAnswer(decision=command.decision, by="person", remark=command.remark, rule=rule)

    def _expect(self, answer_id: str) -> asyncio.Future[Command]:
        waiting: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self._waiting[answer_id] = waiting
        return waiting


class Witness:
    """Stands before any approver: every request and every decision becomes an event, whoever decides."""

    def __init__(self, *, inner: Approver, channel: Channel, on_fail: Callable[[str], None]) -> None:
        self._inner = inner
        self._channel = channel
        self._on_fail = on_fail

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Publish the request, let the inner approver decide, publish the decision."""
        requested = ApprovalRequested(
            approval_id=approval_id(ctx),
            command=action.subject,
            cwd=str(action.cwd),
            reason=verdict.reason,
            rule=verdict.rule,
        )
        deciding = asyncio.ensure_future(self._inner.approve(action, verdict, ctx))
        try:
            # The person's ear is open before the request is heard: an instant answer finds its question.
            await asyncio.sleep(0)
            await self._channel.publish(requested, step_id=ctx.step_id, attempt=ctx.attempt)
            answer = await deciding
        finally:
            deciding.cancel()
        resolved = ApprovalResolved(
            approval_id=requested.approval_id, decision=answer.decision, by=answer.by, rule=answer.rule
        )
        await self._channel.publish(resolved, step_id=ctx.step_id, attempt=ctx.attempt)
        if answer.decision == "fail":
            self._on_fail(action.subject)
        return answer


def approval_id(ctx: ExecCtx) -> str:
    """Return the id that joins a request to its decision: one approval a call."""
    return f"a-{ctx.call_id}"
