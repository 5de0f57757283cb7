"""The questions of one run of a task: recorded until they are answered; the answers are sent to the run.

A run whose worker was killed asks again when it is resumed. An earlier answer that the first run did not receive
applies to the same question of the second.
"""

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, ApprovalResolved, QuestionAnswered, QuestionAsked
from agent.service.agent_process import AgentProcess
from agent.service.engine import Questions
from agent.service.task import NotOpen, PendingQuestion, Task
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder
from tooling.contract.action import USER

NO_ANSWER = "(Nobody has answered in time. This is neither a yes nor a no: do what is safe without an answer, or stop.)"
_NOBODY = "nobody has answered in time"


class RunQuestions:
    """The questions and approvals of one process that works on a task; they expire after `expiry_s` seconds.

    `tell` is called with each one that has no answer yet.
    """

    def __init__(
        self,
        process: AgentProcess,
        task: Task,
        questions: Questions,
        expiry_s: float,
        tell: Callable[[PendingQuestion], None] = lambda question: None,
    ) -> None:
        self._tell = tell
        self._process = process
        self._task = task
        self._questions = questions
        self._expiry = timedelta(seconds=expiry_s)
        # By the id that the run assigned.
        self._open: dict[str, PendingQuestion] = {}
        self._earlier: list[PendingQuestion] = []

    @property
    def is_waiting(self) -> bool:
        """Whether the run waits for an answer."""
        return bool(self._open)

    async def begin(self, folder: SessionFolder) -> None:
        """Load the questions of earlier attempts: still open, or answered after their process had ended."""
        known = await self._questions.list(task_id=self._task.task_id, is_open=False)
        left = [question for question in known if question.state != "expired"]
        taken = _resolved(folder) if left else frozenset[tuple[str, str]]()
        self._earlier = [question for question in left if (question.run_id, question.asked_as) not in taken]

    async def apply(self, envelope: Envelope) -> None:
        """Record a question from an event, or that the run no longer waits."""
        match envelope.event:
            case ApprovalRequested(decided=False) as asked:
                await self._record(_approval(asked, self._pending(envelope, "approval", asked.approval_id)))
            case QuestionAsked() as asked:
                await self._record(_question(asked, self._pending(envelope, "question", asked.question_id)))
            case ApprovalResolved(approval_id=name) | QuestionAnswered(question_id=name):
                if question := self._open.pop(name, None):
                    await self._close(question)
            case _:
                pass

    async def send_answers(self) -> None:
        """Send answers and expiries to the run."""
        if not self._open:
            return
        by_id = {question.question_id: asked_as for asked_as, question in self._open.items()}
        for question in await self._questions.list(task_id=self._task.task_id, is_open=False):
            if question.question_id in by_id and question.state != "open":
                del self._open[by_id[question.question_id]]
                await self._send(question)
                if question.state == "expired":
                    await self._close(question)

    async def close(self) -> None:
        """Close the open questions; nothing waits for them any more."""
        self._open.clear()
        for question in await self._questions.list(task_id=self._task.task_id):
            await self._close(question)

    def _pending(self, envelope: Envelope, kind: Literal["question", "approval"], asked_as: str) -> PendingQuestion:
        now = datetime.now(UTC)
        return PendingQuestion(
            # Runs number their approvals, so ids of two tasks may collide.
            question_id=f"{kind[0]}-{secrets.token_hex(4)}",
            task_id=self._task.task_id,
            session_id=self._task.session_id,
            kind=kind,
            text="",
            asked_at=now,
            expires_at=now + self._expiry,
            step_id=envelope.step_id or "",
            run_id=envelope.run_id,
            asked_as=asked_as,
        )

    async def _record(self, question: PendingQuestion) -> None:
        if self._task.request.is_unattended:
            await self._send(question)
            return
        self._open[question.asked_as] = question
        earlier = self._take_earlier(question)
        known = [await self._read(same) for same in earlier]
        await self._questions.open(self._task.task_id, question)
        # Send the answer first: if this process ends between the two, the answer is not lost.
        answered = [same for same in known if same.state == "answered"]
        if answered:
            await self._forward(answered[-1], question)
        for same in earlier:
            await self._close(same)
        late = [found for same in earlier if (found := await self._read(same)).answer]
        if late and not answered:
            await self._forward(late[-1], question)
        if not late and not answered:
            self._tell(question)

    def _take_earlier(self, question: PendingQuestion) -> list[PendingQuestion]:
        """Return the same question of each earlier run; a run may have asked it more than once."""
        found = {same.run_id: same for same in reversed(self._earlier) if same.asks_the_same(question)}
        for same in found.values():
            self._earlier.remove(same)
        return sorted(found.values(), key=lambda same: same.asked_at)

    async def _forward(self, answered: PendingQuestion, question: PendingQuestion) -> None:
        # Whoever answers the old question after it was closed answers the new one: then it has its answer already.
        with contextlib.suppress(NotOpen):
            await self._questions.answer(answered.answer_to(question))

    async def _read(self, question: PendingQuestion) -> PendingQuestion:
        known = await self._questions.list(task_id=self._task.task_id, is_open=False)
        return next((found for found in known if found.question_id == question.question_id), question)

    async def _send(self, question: PendingQuestion) -> None:
        is_answered = question.state == "answered"
        if question.kind == "question":
            text = question.answer if is_answered else NO_ANSWER
            await self._process.send({"type": "answer", "question_id": question.asked_as, "answer": text})
            return
        decision: dict[str, object] = {"decision": question.answer if is_answered else "deny"}
        if is_answered and question.answer == "allow" and question.command is not None:
            decision = {"decision": "edit", "command": question.command}
        elif is_answered and question.answer == "allow" and question.remember:
            decision["remember"] = question.remember
        remark = question.remark if is_answered else _NOBODY
        await self._process.send({"type": "approve", "approval_id": question.asked_as, "remark": remark, **decision})

    async def _close(self, question: PendingQuestion) -> None:
        await self._questions.close(self._task.task_id, question.question_id)


def _resolved(folder: SessionFolder) -> frozenset[tuple[str, str]]:
    """Return the answers that the runs of a session have received, by run and question id; they must not apply twice.

    A run that loses its worker records that it has no answer; that does not count as one.
    """
    found: set[tuple[str, str]] = set()
    for kind in (ApprovalResolved.type, QuestionAnswered.type):
        for line in read_lines(folder.events, only=kind):
            envelope = line.envelope()
            match envelope.event if envelope else None:
                case ApprovalResolved(by=by, approval_id=name) if by == USER:
                    found.add((line.run_id, name))
                case QuestionAnswered(question_id=name, answer=str()):
                    found.add((line.run_id, name))
                case _:
                    pass
    return frozenset(found)


def _approval(asked: ApprovalRequested, pending: PendingQuestion) -> PendingQuestion:
    return replace(
        pending,
        text=asked.command,
        cwd=asked.cwd,
        reason=asked.reason,
        rule=asked.rule,
        tool=asked.tool or "",
        involves=asked.involves or (),
        diff=asked.diff or "",
    )


def _question(asked: QuestionAsked, pending: PendingQuestion) -> PendingQuestion:
    return replace(pending, text=asked.question, options=asked.options)


def input_request(question: PendingQuestion) -> ApprovalRequested | QuestionAsked:
    """Return the event in which the run asked the question."""
    if question.kind == "question":
        return QuestionAsked(question_id=question.question_id, question=question.text, options=question.options)
    return ApprovalRequested(
        approval_id=question.question_id,
        command=question.text,
        cwd=question.cwd,
        reason=question.reason,
        rule=question.rule,
        tool=question.tool or None,
        involves=question.involves,
        diff=question.diff or None,
    )
