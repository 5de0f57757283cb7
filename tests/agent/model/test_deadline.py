"""Tests of the time limit that the waits of a stream share."""

import asyncio

import pytest

from agent.model.deadline import Deadline


async def _wait(deadline: Deadline, event: asyncio.Event) -> None:
    with deadline:
        await event.wait()


async def test_a_wait_past_the_deadline_times_out_and_the_task_goes_on() -> None:
    deadline = Deadline(asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        await _wait(deadline, asyncio.Event())
    task = asyncio.current_task()
    assert task is not None and not task.cancelling()


async def test_without_a_time_a_wait_has_no_limit() -> None:
    deadline, event = Deadline(), asyncio.Event()
    waiting = asyncio.create_task(_wait(deadline, event))
    await asyncio.sleep(0)
    event.set()
    await waiting


async def test_a_deadline_set_during_a_wait_ends_it() -> None:
    deadline = Deadline()
    waiting = asyncio.create_task(_wait(deadline, asyncio.Event()))
    await asyncio.sleep(0)
    deadline.move(0)
    with pytest.raises(TimeoutError):
        await waiting


async def test_a_deadline_that_has_moved_ends_no_wait_at_its_old_time() -> None:
    deadline, event, loop = Deadline(asyncio.get_running_loop().time()), asyncio.Event(), asyncio.get_running_loop()
    waiting = asyncio.create_task(_wait(deadline, event))
    await asyncio.sleep(0)
    deadline.move(60)
    # After the timer of the old time, which was due before this one.
    loop.call_at(loop.time(), event.set)
    await waiting
    deadline.close()


async def test_a_moved_deadline_still_ends_a_wait() -> None:
    deadline = Deadline(asyncio.get_running_loop().time())
    waiting = asyncio.create_task(_wait(deadline, asyncio.Event()))
    await asyncio.sleep(0)
    deadline.move(0.001)
    with pytest.raises(TimeoutError):
        await waiting


async def test_all_waits_share_one_timer() -> None:
    loop = asyncio.get_running_loop()
    deadline, event = Deadline(loop.time() + 60), asyncio.Event()
    event.set()
    for _ in range(3):
        await _wait(deadline, event)
        deadline.move(90)
    timers = vars(loop)["_scheduled"]
    assert len([timer for timer in timers if getattr(timer, "_callback", None) == deadline._on_timer]) == 1
    deadline.close()


async def test_a_cancelled_wait_stays_cancelled() -> None:
    deadline = Deadline(asyncio.get_running_loop().time() + 60)
    waiting = asyncio.create_task(_wait(deadline, asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    deadline.close()


async def test_a_cancellation_at_the_deadline_is_not_lost() -> None:
    deadline = Deadline()
    waiting = asyncio.create_task(_wait(deadline, asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    deadline._on_timer()
    deadline.move(0)
    with pytest.raises(asyncio.CancelledError):
        await waiting
