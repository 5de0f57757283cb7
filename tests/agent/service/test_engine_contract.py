"""What every engine of the task queue must do, on every database."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.service.engine import TaskEngine, WorkOptions
from agent.service.task import (
    IllegalTransition,
    PendingQuestion,
    Schedule,
    ScheduleMode,
    Task,
    TaskProgress,
    TaskQuery,
    TaskRequest,
    TaskState,
)
from agent.vocabulary.errors import InputError
from tests.agent.service.conftest import ScriptedHandler, rules, until, work_once

pytestmark = pytest.mark.slow
ALL_MODES = tuple(ScheduleMode)


def ask(prompt: str = "count", **given: object) -> TaskRequest:
    return replace(TaskRequest(prompt=prompt, session_id="s1", trace_id="f" * 32), **given)


async def test_a_task_is_queued_and_found_by_its_id_or_a_beginning_of_it(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask(user_id="ann", priority=3))
    assert (task.state, task.session_id, task.request.priority, task.attempt) == (TaskState.QUEUED, "s1", 3, 0)
    assert await engine.tasks.get(task.task_id) == task
    assert await engine.tasks.get(task.task_id[:6]) == task
    with pytest.raises(InputError, match="there is no task 'nothing'"):
        await engine.tasks.get("nothing")


async def test_a_task_with_a_given_id_is_created_once(engine: TaskEngine) -> None:
    first = await engine.tasks.submit(ask("one"), "same")
    again = await engine.tasks.submit(ask("two"), "same")
    assert again == first
    assert len(await engine.tasks.list(TaskQuery())) == 1


async def test_a_worker_runs_what_is_queued_and_ended_tasks_stay_readable(engine: TaskEngine) -> None:
    tasks = [await engine.tasks.submit(ask(f"task {number}")) for number in range(3)]
    handler = ScriptedHandler()
    assert await work_once(engine, handler) == 3
    assert sorted(handler.runs) == sorted(task.task_id for task in tasks)
    ended = await engine.tasks.get(tasks[0].task_id)
    assert (ended.state, ended.attempt, ended.error) == (TaskState.COMPLETED, 1, "")
    assert ended.outcome is not None
    assert ended.outcome.answer == "did task 0"
    assert ended.started_at
    assert ended.ended_at


async def test_tasks_of_higher_priority_start_first(engine: TaskEngine) -> None:
    low = await engine.tasks.submit(ask(priority=-5))
    high = await engine.tasks.submit(ask(priority=5))
    middle = await engine.tasks.submit(ask())
    handler = ScriptedHandler()
    await work_once(engine, handler, concurrency=1)
    assert handler.runs == [high.task_id, middle.task_id, low.task_id]


async def test_a_transient_failure_is_retried_and_the_last_error_kept(engine: TaskEngine) -> None:
    flaky = await engine.tasks.submit(ask("flaky 2"))
    always = await engine.tasks.submit(ask("fail"))
    broken = await engine.tasks.submit(ask("break"))
    await work_once(engine, ScriptedHandler())
    done = await engine.tasks.get(flaky.task_id)
    assert (done.state, done.attempt, done.error) == (TaskState.COMPLETED, 3, "")
    failed = await engine.tasks.get(always.task_id)
    assert (failed.state, failed.attempt, failed.error) == (TaskState.FAILED, 3, "overloaded")
    assert (await engine.tasks.get(broken.task_id)).error == "RuntimeError: a bug"


async def test_between_two_attempts_a_task_is_queued_and_says_when_it_is_tried_again(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("fail"))
    await work_once(engine, ScriptedHandler(), delay_s=3600.0)
    waiting = await engine.tasks.get(task.task_id)
    assert (waiting.state, waiting.attempt, waiting.error) == (TaskState.QUEUED, 1, "overloaded")
    assert waiting.next_run_at
    assert waiting.next_run_at > datetime.now(UTC) + timedelta(minutes=50)
    assert [one.task_id for one in await engine.tasks.list(TaskQuery(states=frozenset({TaskState.QUEUED})))] == [
        task.task_id
    ]
    assert (await engine.stats()).tasks[TaskState.QUEUED] == 1
    canceled = await engine.tasks.cancel(task.task_id)
    assert canceled.state is TaskState.CANCELED
    assert canceled.ended_at
    assert canceled.ended_at > waiting.created_at


async def test_a_final_failure_is_not_retried_but_the_user_may(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("refuse"))
    await work_once(engine, ScriptedHandler())
    assert (await engine.tasks.get(task.task_id)).attempt == 1
    queued = await engine.tasks.retry(task.task_id)
    assert (queued.state, queued.error, queued.outcome) == (TaskState.QUEUED, "", None)
    handler = ScriptedHandler()
    await work_once(engine, handler)
    assert handler.runs == [task.task_id]
    assert (await engine.tasks.get(task.task_id)).state is TaskState.FAILED


async def test_a_completed_task_can_be_neither_canceled_nor_retried(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask())
    await work_once(engine, ScriptedHandler())
    with pytest.raises(IllegalTransition, match="is completed and cannot be canceled"):
        await engine.tasks.cancel(task.task_id)
    with pytest.raises(IllegalTransition, match="cannot be retried"):
        await engine.tasks.retry(task.task_id)


async def test_a_canceled_task_never_starts_until_it_is_retried(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask())
    assert (await engine.tasks.cancel(task.task_id)).state is TaskState.CANCELED
    handler = ScriptedHandler()
    await work_once(engine, handler)
    assert handler.runs == []
    await engine.tasks.retry(task.task_id)
    await work_once(engine, handler)
    assert handler.runs == [task.task_id]


async def test_a_running_task_is_canceled_with_what_it_runs(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("hang"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=ALL_MODES)))
    await handler.has_started.wait()
    assert (await engine.tasks.get(task.task_id)).state is TaskState.RUNNING
    canceling = await engine.tasks.cancel(task.task_id)
    assert canceling.state is TaskState.CANCELING

    async def is_canceled() -> bool:
        return (await engine.tasks.get(task.task_id)).state is TaskState.CANCELED

    await until(is_canceled)
    assert handler.running == 0
    await worker.stop()
    await working


async def test_a_worker_never_has_more_tasks_than_its_limit_over_all_modes(engine: TaskEngine) -> None:
    modes = [*[ScheduleMode.IMMEDIATE] * 6, *[ScheduleMode.SCHEDULED] * 6]
    for mode in modes:
        await engine.tasks.submit(ask("quick", mode=mode))
    handler = ScriptedHandler()
    assert await work_once(engine, handler, concurrency=5) == 12
    assert handler.most <= 5


async def test_a_task_waits_for_its_time(engine: TaskEngine) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    task = await engine.tasks.submit(ask(mode=ScheduleMode.SCHEDULED, run_at=later))
    handler = ScriptedHandler()
    await work_once(engine, handler)
    assert handler.runs == []
    waiting = await engine.tasks.get(task.task_id)
    assert waiting.state is TaskState.QUEUED
    assert waiting.next_run_at is not None
    assert abs(waiting.next_run_at - later) < timedelta(seconds=2)


async def test_a_mode_that_is_closed_does_not_start(engine: TaskEngine) -> None:
    night = await engine.tasks.submit(ask(mode=ScheduleMode.NIGHTLY))
    day = await engine.tasks.submit(ask())
    handler = ScriptedHandler()
    worker = engine.worker(rules(is_open=lambda mode: mode is not ScheduleMode.NIGHTLY))
    await work_once(engine, handler, worker=worker)
    assert handler.runs == [day.task_id]
    assert (await engine.tasks.get(night.task_id)).state is TaskState.QUEUED


async def test_a_worker_that_hands_back_its_work_loses_nothing(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("hang"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=ALL_MODES)))
    await handler.has_started.wait()
    await worker.stop(hands_back=True)
    await working
    assert handler.running == 0
    back = await engine.tasks.get(task.task_id)
    assert (back.state, back.worker) == (TaskState.QUEUED, "")


async def test_tasks_are_listed_newest_first_and_filtered(engine: TaskEngine) -> None:
    first = await engine.tasks.submit(ask("refuse", user_id="ann"))
    await work_once(engine, ScriptedHandler())
    second = await engine.tasks.submit(ask("two", session_id="s2", mode=ScheduleMode.SCHEDULED))

    async def ids(**given: object) -> list[str]:
        return [task.task_id for task in await engine.tasks.list(replace(TaskQuery(), **given))]

    assert sorted(await ids()) == sorted([first.task_id, second.task_id])
    assert len(await ids(limit=1)) == 1
    assert await ids(states=frozenset({TaskState.FAILED})) == [first.task_id]
    assert await ids(states=frozenset({TaskState.QUEUED, TaskState.RUNNING})) == [second.task_id]
    assert await ids(session_id="s2") == [second.task_id]
    assert await ids(session_id="s2", offset=1) == []
    assert await ids(user_id="ann") == [first.task_id]
    assert await ids(modes=frozenset({ScheduleMode.SCHEDULED})) == [second.task_id]


def _question(task: Task) -> PendingQuestion:
    now = datetime.now(UTC)
    return PendingQuestion(
        question_id="q1",
        task_id=task.task_id,
        session_id="s1",
        kind="question",
        text="Which?",
        options=("a", "b"),
        asked_at=now,
        expires_at=now + timedelta(hours=1),
    )


async def test_a_question_waits_with_its_task_and_is_answered_once(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("hang"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=ALL_MODES)))
    await handler.has_started.wait()
    question = _question(task)
    late = replace(question, question_id="q2", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    await engine.questions.open(task.task_id, question)
    await engine.questions.open(task.task_id, late)
    assert [found.question_id for found in await engine.questions.list()] == ["q1"]
    assert (await engine.tasks.get(task.task_id)).waiting == 2
    # What an executor reports is noted with the task of its session, and with no other.
    await engine.tasks.report("elsewhere", TaskProgress(progress=90))
    assert (await engine.tasks.get(task.task_id)).progress is None
    await engine.tasks.report("s1", TaskProgress(progress=40, current_step="build"))
    reported = await engine.tasks.get(task.task_id)
    assert (reported.progress, reported.current_step) == (40, "build")
    answered = await engine.questions.answer(replace(question, answer="a"))
    assert (answered.state, answered.answer) == ("answered", "a")
    with pytest.raises(InputError, match="q1 is answered already"):
        await engine.questions.answer(replace(question, answer="b"))
    with pytest.raises(InputError, match="q2 is expired already"):
        await engine.questions.answer(replace(late, answer="b"))
    assert await engine.questions.list(task_id=task.task_id) == []
    states = [found.state for found in await engine.questions.list(task_id=task.task_id, is_open=False)]
    assert sorted(states) == ["answered", "expired"]
    await worker.stop(hands_back=True)
    await working


async def test_a_question_of_a_task_that_changes_workers_can_always_be_answered(engine: TaskEngine) -> None:
    task = await engine.tasks.submit(ask("hang"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=ALL_MODES)))
    await handler.has_started.wait()
    question = _question(task)
    # A run that was resumed asks again: an answer to its old question is one to the new.
    await engine.questions.open(task.task_id, old := replace(question, question_id="q3"))
    await engine.questions.close(task.task_id, "q3")
    await engine.questions.open(task.task_id, replace(question, question_id="q4", text="Which one?"))
    with pytest.raises(InputError, match="q3 is expired already"):
        await engine.questions.answer(replace(old, answer="b"))
    await engine.questions.open(task.task_id, replace(question, question_id="q5"))
    forwarded = await engine.questions.answer(replace(old, answer="b"))
    assert (forwarded.question_id, forwarded.answer) == ("q5", "b")
    assert [found.question_id for found in await engine.questions.list(task_id=task.task_id)] == ["q4"]
    # Closed after it was answered: it stays closed, and keeps the answer.
    await engine.questions.close(task.task_id, "q5")
    closed = {found.question_id: found for found in await engine.questions.list(task_id=task.task_id, is_open=False)}
    assert (closed["q5"].state, closed["q5"].answer) == ("expired", "b")
    await worker.stop(hands_back=True)
    await working
    # Until another worker has taken the task, what it asks is still listed, and can be answered.
    assert (await engine.tasks.get(task.task_id)).state is TaskState.QUEUED
    assert [found.question_id for found in await engine.questions.list()] == ["q4"]
    assert (await engine.tasks.get(task.task_id)).waiting == 1
    assert "q5" in [found.question_id for found in await engine.questions.list(is_open=False)]
    assert (await engine.stats()).open_questions == 1
    assert (await engine.questions.answer(replace(question, question_id="q4", answer="a"))).state == "answered"
    await engine.tasks.cancel(task.task_id)
    assert await engine.questions.list(is_open=False) == []


async def test_a_schedule_makes_tasks_by_the_clock_and_on_request(engine: TaskEngine) -> None:
    every_second = Schedule(name="often", cron="* * * * * *", zone="Europe/Berlin", request=ask("tick"))
    added = await engine.schedules.add(every_second)
    assert added.next_run_at
    with pytest.raises(InputError, match="there is a schedule 'often' already"):
        await engine.schedules.add(every_second)
    with pytest.raises(InputError, match="is not a cron expression"):
        await engine.schedules.add(replace(every_second, name="bad", cron="61 * * * *"))
    with pytest.raises(InputError, match="no day matches the cron expression"):
        await engine.schedules.add(replace(every_second, name="bad", cron="0 0 30 2 *"))
    with pytest.raises(InputError, match="there is no time zone"):
        await engine.schedules.add(replace(every_second, name="bad", zone="Mars/Base"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=2, modes=ALL_MODES)))

    async def has_run_twice() -> bool:
        return len(set(handler.runs)) >= 2

    await until(has_run_twice)
    paused = await engine.schedules.pause("often", is_paused=True)
    assert (paused.is_paused, paused.next_run_at) == (True, None)
    await worker.stop()
    await working
    by_hand = await engine.schedules.run_now("often")
    assert by_hand.request.schedule == "often"
    assert by_hand.task_id.startswith("often@")
    [listed] = await engine.schedules.list()
    assert listed.last_task_id.startswith("often@")
    resumed = await engine.schedules.pause("often", is_paused=False)
    assert resumed.next_run_at
    await engine.schedules.remove("often")
    assert await engine.schedules.list() == []
    with pytest.raises(InputError, match="there is no schedule 'often'"):
        await engine.schedules.remove("often")


async def test_stats_count_tasks_by_state_and_name_the_workers(engine: TaskEngine) -> None:
    await engine.tasks.submit(ask("refuse"))
    await engine.tasks.submit(ask("hang"))
    handler = ScriptedHandler()
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=ALL_MODES)))

    async def has_failed_and_runs() -> bool:
        tasks = (await engine.stats()).tasks
        return (tasks[TaskState.RUNNING], tasks[TaskState.FAILED]) == (1, 1)

    await until(has_failed_and_runs)
    stats = await engine.stats()
    assert stats.tasks[TaskState.FAILED] == 1
    [only] = stats.workers
    assert (only.is_alive, only.concurrency, only.modes) == (True, 1, ALL_MODES)
    await worker.stop(hands_back=True)
    await working
    assert (await engine.stats()).workers == ()
