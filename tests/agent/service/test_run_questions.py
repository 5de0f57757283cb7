"""Questions of a run that goes on at another worker: an answer counts, at whatever moment it is given."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.protocol.envelope import Envelope
from agent.protocol.events import QuestionAsked
from agent.service.dbos_engine.engine import DbosEngine
from agent.service.dbos_engine.records import answer_facts
from agent.service.engine import Questions
from agent.service.run_questions import RunQuestions
from agent.service.task import PendingQuestion, Task, TaskRequest
from agent.sessions.store import SessionStore
from tooling.contract.json_codec import JsonObject


class FakeProcess:
    """Keeps the commands that a run would get."""

    def __init__(self) -> None:
        self.sent: list[JsonObject] = []

    async def send(self, command: JsonObject) -> None:
        self.sent.append(command)


class AnsweredMeanwhile:
    """Real questions; the user answers the first one right before the operation with the given number."""

    def __init__(self, real: Questions, at: int) -> None:
        self._real = real
        self._at = at
        self.first: PendingQuestion | None = None
        self.is_given = False

    async def _before_operation(self) -> None:
        self._at -= 1
        if self._at == 0 and not self.is_given:
            await self.give()

    async def give(self) -> None:
        assert self.first
        self.is_given = True
        await self._real.answer(replace(self.first, answer="blue"))

    async def open(self, task_id: str, question: PendingQuestion) -> None:
        await self._before_operation()
        await self._real.open(task_id, question)

    async def list(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        await self._before_operation()
        return await self._real.list(task_id=task_id, is_open=is_open)

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        await self._before_operation()
        return await self._real.answer(question)

    async def close(self, task_id: str, question_id: str) -> None:
        await self._before_operation()
        await self._real.close(task_id, question_id)


def _asked(run: str) -> Envelope:
    event = QuestionAsked(question_id="q1", question="Which color?", options=("red", "blue"))
    return Envelope(ts=datetime.now(UTC), seq=1, session_id="s1", run_id=run, event=event)


async def _take_over(questions: AnsweredMeanwhile, engine: DbosEngine, task: Task, data: Path) -> FakeProcess:
    """Ask with one run, which dies, and again with the next; the answer is given at one moment of that."""
    before = RunQuestions(FakeProcess(), task, engine.questions, 3600)  # type: ignore[arg-type]
    await before.apply(_asked("run-1"))
    [questions.first] = await engine.questions.list(task_id=task.task_id)
    process = FakeProcess()
    after = RunQuestions(process, task, questions, 3600)  # type: ignore[arg-type]
    await after.begin(SessionStore(data).open("s1"))
    await after.apply(_asked("run-2"))
    if not questions.is_given:
        await questions.give()
    await after.send_answers()
    return process


@pytest.mark.parametrize("moment", range(1, 7))
async def test_an_answer_given_while_a_task_is_taken_over_reaches_the_run_once(tmp_path: Path, moment: int) -> None:
    engine = DbosEngine(tmp_path)
    task = await engine.tasks.submit(TaskRequest(prompt="paint", session_id="s1"))
    try:
        process = await _take_over(AnsweredMeanwhile(engine.questions, moment), engine, task, tmp_path)
    finally:
        await engine.close()
    assert process.sent == [{"type": "answer", "question_id": "q1", "answer": "blue"}]


class BothAtOnce(AnsweredMeanwhile):
    """The user's answer is stored right before the old question is closed, and found closed right after that."""

    def __init__(self, engine: DbosEngine) -> None:
        super().__init__(engine.questions, at=0)
        self._engine = engine

    async def close(self, task_id: str, question_id: str) -> None:
        assert self.first
        self._engine.tasks.note(task_id, answer_facts(replace(self.first, answer="blue")))
        await super().close(task_id, question_id)
        await self.give()


async def test_a_user_who_answers_the_old_question_while_the_new_one_is_recorded_fails_nothing(tmp_path: Path) -> None:
    engine = DbosEngine(tmp_path)
    task = await engine.tasks.submit(TaskRequest(prompt="paint", session_id="s1"))
    try:
        process = await _take_over(BothAtOnce(engine), engine, task, tmp_path)
    finally:
        await engine.close()
    assert process.sent == [{"type": "answer", "question_id": "q1", "answer": "blue"}]


class KilledBeforeClosing(AnsweredMeanwhile):
    """The worker dies when it has stored the question of the resumed run, and before it closes the old one."""

    async def close(self, task_id: str, question_id: str) -> None:
        raise Killed


class Killed(Exception):
    pass


async def test_a_worker_killed_while_it_takes_over_a_question_leaves_one_to_answer(tmp_path: Path) -> None:
    engine = DbosEngine(tmp_path)
    task = await engine.tasks.submit(TaskRequest(prompt="paint", session_id="s1"))
    process = FakeProcess()
    third = RunQuestions(process, task, engine.questions, 3600)  # type: ignore[arg-type]
    try:
        with pytest.raises(Killed):
            await _take_over(KilledBeforeClosing(engine.questions, at=0), engine, task, tmp_path)
        [question] = await engine.questions.list(task_id=task.task_id)
        assert question.run_id == "run-2"
        await engine.questions.answer(replace(question, answer="blue"))
        await third.begin(SessionStore(tmp_path).open("s1"))
        await third.apply(_asked("run-3"))
        await third.send_answers()
        left = await engine.questions.list(task_id=task.task_id)
    finally:
        await engine.close()
    assert process.sent == [{"type": "answer", "question_id": "q1", "answer": "blue"}]
    assert left == []
