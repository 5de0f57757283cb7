"""Questions and approvals of running tasks, stored with the task that waits for them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agent.service.dbos_engine.queue import DbosTasks
from agent.service.dbos_engine.records import WAITING, answer_facts, closed_facts, question_facts, questions_of
from agent.service.task import NotOpen, PendingQuestion
from agent.vocabulary.errors import InputError

_HINT = "`agent questions list` shows what can be answered"


class DbosQuestions:
    """Stores, finds and answers questions. `now` is the clock of their expiry."""

    def __init__(self, tasks: DbosTasks, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._tasks = tasks
        self._now = now

    async def open(self, task_id: str, question: PendingQuestion) -> None:
        await self._tasks.call(self._store, task_id, question)

    async def list(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        return await self._tasks.call(self._list, task_id, is_open)

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        return await self._tasks.call(self._answer, question)

    async def close(self, task_id: str, question_id: str) -> None:
        await self._tasks.call(self._close, task_id, question_id)

    def open_now(self) -> Sequence[PendingQuestion]:
        """Return the open questions; blocks this thread."""
        return self._list("", True)

    def _store(self, task_id: str, question: PendingQuestion) -> None:
        self._tasks.note(task_id, question_facts(question))

    def _list(self, task_id: str, is_open: bool) -> Sequence[PendingQuestion]:  # noqa: FBT001 (called through a thread)
        rows = [self._tasks.find(task_id)] if task_id else self._tasks.asking()
        running = (row for row in rows if row.status in WAITING or not is_open)
        found = [self._at_this_time(question) for row in running for question in questions_of(row)]
        kept = [question for question in found if not is_open or question.state == "open"]
        return sorted(kept, key=lambda question: question.asked_at)

    def _at_this_time(self, question: PendingQuestion) -> PendingQuestion:
        is_late = question.state == "open" and question.expires_at <= self._now()
        return replace(question, state="expired") if is_late else question

    def _answer(self, question: PendingQuestion) -> PendingQuestion:
        stored = self._find(question.task_id, question.question_id)
        if stored.state == "open":
            answered = replace(question, state="answered", answered_at=self._now())
            self._tasks.note(question.task_id, answer_facts(answered))
            # Closed meanwhile, possibly before the answer was visible.
            stored = self._find(question.task_id, question.question_id)
            if stored.state == "answered":
                return answered
        if stored.state == "expired" and (again := self._asked_again(stored)):
            return self._answer(question.answer_to(again))
        raise NotOpen(f"{question.question_id} is {stored.state} already", _HINT)

    def _asked_again(self, question: PendingQuestion) -> PendingQuestion | None:
        """Return the same question asked by a resumed run."""
        same = (found for found in self._list(question.task_id, True) if found.asks_the_same(question))
        return next(same, None)

    def _close(self, task_id: str, question_id: str) -> None:
        self._tasks.note(task_id, closed_facts(self._find(task_id, question_id)))

    def _find(self, task_id: str, question_id: str) -> PendingQuestion:
        for question in self._list(task_id, False):
            if question.question_id == question_id:
                return question
        raise InputError(f"there is no question {question_id!r}", _HINT)
