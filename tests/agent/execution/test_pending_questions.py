"""The person at the other end: what waits for an answer, and for how long."""

import asyncio
import time
import uuid
from pathlib import Path

from agent.execution.approvals import PendingQuestions
from agent.protocol.channel import Channel
from agent.protocol.commands import ResolveApproval
from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx

ACTION = Action(tool="look", effect="read", subject="x", cwd=Path("/"))
ASK = Verdict(decision=Decision.ASK, reasons=("it asks",))


def call(number: int) -> ExecCtx:
    nobody = uuid.UUID(int=0)
    return ExecCtx(user_id=nobody, task_id=nobody, working_dir=Path("/"), step_id="s1", call_id=f"s1.1.{number}")


async def test_calls_of_one_turn_can_wait_side_by_side_and_the_clock_stands_still_once() -> None:
    person = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    began = time.monotonic()
    waiting = [asyncio.ensure_future(person.approve(ACTION, ASK, call(number))) for number in (1, 2)]
    await asyncio.sleep(0.05)
    for number in (1, 2):
        assert person.resolve(ResolveApproval(approval_id=f"a-s1.1.{number}", decision="allow"))
        await asyncio.sleep(0.05)
    assert [(await answer).decision for answer in waiting] == ["allow", "allow"]
    waited = person.waited_s("s1")
    assert 0 < waited <= time.monotonic() - began
    await asyncio.sleep(0.02)
    assert person.waited_s("s1") == waited


async def test_somebody_can_be_told_when_a_step_waits_and_when_it_goes_on() -> None:
    person = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    told: list[str] = []
    person.set_wait_callbacks(
        started=lambda step: told.append(f"{step} waits"), ended=lambda step: told.append(f"{step} goes on")
    )
    waiting = [asyncio.ensure_future(person.approve(ACTION, ASK, call(number))) for number in (1, 2)]
    await asyncio.sleep(0.01)
    assert told == ["s1 waits"]
    for number in (1, 2):
        assert person.resolve(ResolveApproval(approval_id=f"a-s1.1.{number}", decision="allow"))
    await asyncio.gather(*waiting)
    assert told == ["s1 waits", "s1 goes on"]
