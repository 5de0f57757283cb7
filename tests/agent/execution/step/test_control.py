"""StepControl: each message is delivered once per step, and only a running step can be stopped."""

import asyncio

from agent.execution.step.control import STOPPED_BY_USER, StepControl
from agent.protocol.commands import Steer, StopStep


def test_a_message_to_all_is_delivered_once_to_each_step_and_to_later_ones() -> None:
    control = StepControl()
    assert control.steer(Steer(text="mind the gap"))
    assert control.pop_messages("a") == ["mind the gap"]
    assert control.pop_messages("a") == []
    assert (control.has_messages("b"), control.pop_messages("b")) == (True, ["mind the gap"])


async def test_a_message_to_one_step_reaches_no_other() -> None:
    control = StepControl()
    task: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert not control.steer(Steer(text="x", step_id="a"))
    with control.track("a", task):
        assert control.steer(Steer(text="for a", step_id="a"))
    assert (control.pop_messages("b"), control.pop_messages("a")) == ([], ["for a"])


async def test_only_a_running_step_can_be_stopped() -> None:
    control = StepControl()
    task: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert not control.stop(StopStep(step_id="a"))
    with control.track("a", task):
        assert control.stop(StopStep(step_id="a"))
    assert (task.cancelled(), control.stop_reason("a"), control.stop_reason("b")) == (True, STOPPED_BY_USER, None)
