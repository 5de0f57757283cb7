"""Questions and approvals: published as events, answered by commands with the same id."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agent.protocol.channel import Channel
from agent.protocol.commands import Answer, AnswerQuestion, Detach, ResolveApproval
from agent.protocol.events import ApprovalRequested, ApprovalResolved, QuestionAnswered, QuestionAsked
from tooling.approvals.rule_text import suggest_rules
from tooling.approvals.script_content import script_digests
from tooling.contract.action import REVIEWER, USER, Action, ApprovalAnswer, Approver, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolError

# `by` of the denial when the user gave no answer in time, or is gone.
TIMEOUT = "timeout"
DETACHED = "the end of the input"


class PendingQuestions:
    """Asks the user and waits for the answers; implements the Asker and Approver ports of the tools."""

    def __init__(self, *, channel: Channel, is_present: bool, timeout_s: float) -> None:
        self._channel = channel
        self._timeout_s = timeout_s
        self._is_user_present = is_present
        self._pending: dict[str, asyncio.Future[Answer | Detach]] = {}
        self._texts: dict[str, str] = {}
        self._waited: dict[str, float] = {}
        self._waiting_since: dict[str, list[float]] = {}
        self._on_wait_start: Callable[[str], None] = lambda step_id: None
        self._on_wait_end: Callable[[str], None] = lambda step_id: None

    def set_wait_callbacks(self, *, started: Callable[[str], None], ended: Callable[[str], None]) -> None:
        """Set the callbacks for the start and the end of a step's wait for the user."""
        self._on_wait_start, self._on_wait_end = started, ended

    def waited_s(self, step_id: str) -> float:
        """Return how long a step has waited for the user; its clock stops meanwhile."""
        since = self._waiting_since.get(step_id)
        return self._waited.get(step_id, 0.0) + (time.monotonic() - since[0] if since else 0.0)

    @property
    def pending_texts(self) -> tuple[str, ...]:
        """The unanswered questions and actions, oldest first."""
        return tuple(self._texts[answer_id] for answer_id in self._pending)

    def resolve(self, command: Answer) -> bool:
        """Deliver an answer; False if nothing waits for it."""
        answer_id = command.approval_id if isinstance(command, ResolveApproval) else command.question_id
        waiting = self._pending.pop(answer_id, None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(command)
        return True

    def detach(self) -> None:
        """Stop waiting for all current and later answers."""
        self._is_user_present = False
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_result(Detach())
        self._pending.clear()

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        """Ask a question; None if no user is present."""
        question_id = f"q-{os.urandom(4).hex()}"
        asked = QuestionAsked(question_id=question_id, question=question.text, options=question.options)
        waiting = self._add_pending(question_id, question.text) if self._is_user_present else None
        await self._channel.publish(asked, step_id=ctx.step_id, attempt=ctx.attempt)
        command: Answer | Detach | None = None
        if waiting:
            with self._count_waiting(ctx.step_id):
                command = await waiting
        answer = command.answer if isinstance(command, AnswerQuestion) else None
        answered = QuestionAnswered(question_id=question_id, answer=answer)
        await self._channel.publish(answered, step_id=ctx.step_id, attempt=ctx.attempt)
        return answer

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Publish the exact action, wait for the decision, publish it."""
        with self._count_waiting(ctx.step_id):
            return await self.request(approval_requested(action, verdict, ctx), ctx.step_id, ctx.attempt)

    async def request(
        self, requested: ApprovalRequested, step_id: str | None = None, attempt: int | None = None
    ) -> ApprovalAnswer:
        """Publish a request, wait for the decision, publish it; without a step it is about the whole plan."""
        waiting = self._add_pending(requested.approval_id, requested.command)
        await self._channel.publish(requested, step_id=step_id, attempt=attempt)
        answer = await self._wait_for_decision(requested.approval_id, waiting)
        if answer.command is not None and answer.command.strip() == requested.command.strip():
            answer = replace(answer, command=None)
        await self._channel.publish(approval_resolved(requested, answer), step_id=step_id, attempt=attempt)
        return answer

    @contextmanager
    def _count_waiting(self, step_id: str) -> Iterator[None]:
        # Calls of one turn may wait in parallel: the time from the first question to the last answer counts once.
        since = self._waiting_since.setdefault(step_id, [])
        since.append(since[0] if since else time.monotonic())
        if len(since) == 1:
            self._on_wait_start(step_id)
        try:
            yield
        finally:
            if len(since) == 1:
                self._waited[step_id] = self.waited_s(step_id)
            since.pop()
            if not since:
                self._on_wait_end(step_id)

    async def _wait_for_decision(self, approval_id: str, waiting: asyncio.Future[Answer | Detach]) -> ApprovalAnswer:
        try:
            async with asyncio.timeout(self._timeout_s):
                command = await waiting
        except TimeoutError:
            self._pending.pop(approval_id, None)
            remark = f"No answer within {self._timeout_s:g} s."
            return ApprovalAnswer(decision="deny", by=TIMEOUT, remark=remark)
        if not isinstance(command, ResolveApproval):
            return ApprovalAnswer(decision="deny", by=DETACHED, remark="Nobody can answer any more.")
        return ApprovalAnswer(
            decision=command.decision,
            by=USER,
            remark=command.remark,
            scope=command.scope,
            command=command.command,
        )

    def _add_pending(self, answer_id: str, text: str) -> asyncio.Future[Answer | Detach]:
        waiting: asyncio.Future[Answer | Detach] = asyncio.get_running_loop().create_future()
        if self._is_user_present:
            self._pending[answer_id] = waiting
            self._texts[answer_id] = text
        else:
            waiting.set_result(Detach())
        return waiting


class ReportingApprover:
    """Publishes refusals by a policy, as a request and its decision, unless they are expected.

    The same applies to all decisions of the reviewer.
    """

    def __init__(self, *, policy: Approver, channel: Channel, on_fail: Callable[[str], None]) -> None:
        self._policy = policy
        self._channel = channel
        self._on_fail = on_fail

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Return the decision of the policy; `on_fail` is called if it ends the run."""
        answer = await self._policy.approve(action, verdict, ctx)
        is_expected = answer.decision == "allow" and answer.by != REVIEWER
        if is_expected or answer.by in (USER, TIMEOUT, DETACHED) or not answer.is_failure:
            return answer
        requested = approval_requested(action, replace(verdict, opinion=answer.opinion), ctx, is_decided=True)
        for event in (requested, approval_resolved(requested, answer)):
            await self._channel.publish(event, step_id=ctx.step_id, attempt=ctx.attempt)
        if answer.decision == "fail":
            self._on_fail(action.subject)
        return answer


def approval_requested(
    action: Action, verdict: Verdict, ctx: ExecCtx, *, is_decided: bool = False
) -> ApprovalRequested:
    """Return the event that requests a decision; its id identifies the call.

    Raises ToolError if an ordinary edit is going to fail anyway: then there is nothing to decide.
    """
    try:
        diff = action.preview() if action.preview else ""
    except ToolError:
        # The error may quote the file: without approval, the model learns nothing about a file that the judge doubts.
        if verdict.decision is Decision.ALLOW and not is_decided:
            raise
        diff = ""
    return ApprovalRequested(
        approval_id=f"a-{ctx.call_id}",
        command=action.subject,
        cwd=str(action.cwd),
        reason=verdict.reason,
        rule=_suggested_rule(action, verdict),
        tool=action.tool,
        involves=verdict.involves or None,
        diff=diff or None,
        opinion=verdict.opinion,
        decided=is_decided,
    )


def approval_resolved(requested: ApprovalRequested, answer: ApprovalAnswer) -> ApprovalResolved:
    """Return the event of the decision; a lasting approval names the rule that was shown."""
    is_allowed_by_user = answer.by == USER and answer.decision == "allow"
    is_lasting = is_allowed_by_user and answer.scope in ("project", "always") and answer.command is None
    return ApprovalResolved(
        approval_id=requested.approval_id,
        decision=answer.decision,
        by=answer.by,
        rule=requested.rule if is_lasting else answer.rule,
        opinion=answer.opinion if answer.by == REVIEWER else None,
        scope=answer.scope if is_allowed_by_user else None,
        edited_command=answer.command,
    )


def _suggested_rule(action: Action, verdict: Verdict) -> str:
    """Return the rule that would make asking unnecessary; none for actions that always need approval."""
    if action.effect in ("execute", "web"):
        return ", ".join(suggest_rules(verdict.commands_to_approve, script_digests(verdict.scripts)))
    return "" if action.effect == "forget" else action.tool
