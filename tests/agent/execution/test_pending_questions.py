"""Pending questions and approvals: the time a step waits for the user."""

import asyncio
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from agent.execution.approvals import DETACHED, PendingQuestions, approval_requested
from agent.protocol.channel import Channel
from agent.protocol.commands import ResolveApproval
from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.question import Question
from tooling.contract.result import ToolError

ACTION = Action(tool="look", effect="read", subject="x", cwd=Path("/"))
ASK = Verdict(decision=Decision.ASK, reasons=("it asks",))


def call(number: int) -> ExecCtx:
    no_id = uuid.UUID(int=0)
    return ExecCtx(user_id=no_id, task_id=no_id, working_dir=Path("/"), step_id="s1", call_id=f"s1.1.{number}")


async def test_concurrent_waits_of_one_step_are_counted_once() -> None:
    questions = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    began = time.monotonic()
    waiting = [asyncio.ensure_future(questions.approve(ACTION, ASK, call(number))) for number in (1, 2)]
    await asyncio.sleep(0.05)
    for number in (1, 2):
        assert questions.resolve(ResolveApproval(approval_id=f"a-s1.1.{number}", decision="allow"))
        await asyncio.sleep(0.05)
    assert [(await answer).decision for answer in waiting] == ["allow", "allow"]
    waited = questions.waited_s("s1")
    assert 0 < waited <= time.monotonic() - began
    await asyncio.sleep(0.02)
    assert questions.waited_s("s1") == waited


async def test_a_command_that_the_user_leaves_as_it_is_counts_as_allowed_not_as_changed() -> None:
    questions = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    for command, changed in ((ACTION.subject, None), (f" {ACTION.subject}\n", None), ("true", "true")):
        waiting = asyncio.ensure_future(questions.approve(ACTION, ASK, call(1)))
        await asyncio.sleep(0.01)
        assert questions.resolve(ResolveApproval(approval_id="a-s1.1.1", decision="allow", command=command))
        answer = await waiting
        assert (answer.decision, answer.command) == ("allow", changed)


async def test_an_edit_that_is_going_to_fail_fails_before_the_user_is_asked() -> None:
    def preview() -> str:
        raise ToolError("old_text is not in a.txt.")

    edit = replace(ACTION, effect="write", preview=preview)
    questions = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    with pytest.raises(ToolError):
        await questions.approve(edit, Verdict(decision=Decision.ALLOW), call(1))
    assert questions.waited_s("s1") < 60
    # Of a file that the judge asks about, the model learns nothing unasked.
    assert approval_requested(edit, ASK, call(2)).diff is None
    assert approval_requested(edit, Verdict(decision=Decision.ALLOW), call(2), is_decided=True).diff is None


async def test_callbacks_report_when_a_step_starts_and_stops_waiting() -> None:
    questions = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    calls: list[str] = []
    questions.set_wait_callbacks(
        started=lambda step: calls.append(f"{step} waits"), ended=lambda step: calls.append(f"{step} continues")
    )
    waiting = [asyncio.ensure_future(questions.approve(ACTION, ASK, call(number))) for number in (1, 2)]
    await asyncio.sleep(0.01)
    assert calls == ["s1 waits"]
    for number in (1, 2):
        assert questions.resolve(ResolveApproval(approval_id=f"a-s1.1.{number}", decision="allow"))
    await asyncio.gather(*waiting)
    assert calls == ["s1 waits", "s1 continues"]


async def test_when_nobody_can_answer_any_more_open_and_later_questions_end_at_once() -> None:
    questions = PendingQuestions(channel=Channel(session_id="s", run_id="r", log=None), is_present=True, timeout_s=60)
    approval = asyncio.ensure_future(questions.approve(ACTION, ASK, call(1)))
    question = asyncio.ensure_future(questions.ask(Question(text="Which?"), call(2)))
    await asyncio.sleep(0.01)
    questions.detach()
    assert (await approval, await question) == (await questions.approve(ACTION, ASK, call(3)), None)
    assert ((await approval).decision, (await approval).by) == ("deny", DETACHED)
    assert not questions.resolve(ResolveApproval(approval_id="a-s1.1.1", decision="allow"))
