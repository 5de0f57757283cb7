"""StepControl: each step hears each word once, and only a step at work can be stopped."""

import asyncio

from agent.execution.step.control import StepControl
from agent.protocol.commands import Steer, StopStep


def test_words_for_all_are_heard_by_each_step_once_and_by_later_ones_too() -> None:
    wishes = StepControl()
    assert wishes.steer(Steer(text="mind the gap"))
    assert wishes.pop_messages("a") == ["mind the gap"]
    assert wishes.pop_messages("a") == []
    assert (wishes.has_messages("b"), wishes.pop_messages("b")) == (True, ["mind the gap"])


async def test_words_for_one_step_reach_no_other() -> None:
    wishes = StepControl()
    working: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert not wishes.steer(Steer(text="x", step_id="a"))
    with wishes.track("a", working):
        assert wishes.steer(Steer(text="for a", step_id="a"))
    assert (wishes.pop_messages("b"), wishes.pop_messages("a")) == ([], ["for a"])


async def test_only_a_step_at_work_can_be_stopped() -> None:
    wishes = StepControl()
    working: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert not wishes.stop(StopStep(step_id="a"))
    with wishes.track("a", working):
        assert wishes.stop(StopStep(step_id="a"))
    assert (working.cancelled(), wishes.is_stopped("a"), wishes.is_stopped("b")) == (True, True, False)
