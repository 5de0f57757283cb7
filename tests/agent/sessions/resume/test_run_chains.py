"""Resumed runs form a chain with one conversation per step."""

from pathlib import Path

import pytest

from agent.sessions.resume.resume_state import RunIsFinished
from agent.vocabulary.message import Message
from agent.vocabulary.unfinished import CANCELLED_CALL, TRY_AGAIN, UNKNOWN_CALL
from tests.agent.sessions.recorded_events import (
    RUN_START,
    LogBuilder,
    assistant_calls,
    message_added,
    plan_updated,
    rebuild_step,
    run_completed,
    run_started,
    step_completed,
    step_started,
    tool_completed,
    tool_result,
    tool_started,
)


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "events.jsonl")


def test_a_completed_step_starts_its_turn_count_again(log: LogBuilder) -> None:
    turn = (
        message_added("assistant", "", ("c1", "read_file")),
        tool_started("c1", "read_file"),
        tool_completed("c1", "read_file"),
    )
    unfinished = rebuild_step(log, *turn, step_completed("partial"))
    assert (len(unfinished.messages), unfinished.turns) == (2, 0)


@pytest.mark.parametrize("status", ["denied", "deferred", "blocked"])
def test_the_next_run_may_retry_a_refused_call(log: LogBuilder, status: str) -> None:
    refused = tool_completed("c1", "run_command", "no", status=status, exit_code=126)
    turn = (message_added("assistant", "", ("c1", "run_command")), tool_started("c1", "run_command"), refused)
    log.add_run(
        "r1", *RUN_START, step_started(), *turn, message_added("assistant", "could not"), step_completed("partial")
    )
    again = Message(role="user", content=TRY_AGAIN)
    assert log.unfinished().steps["a"].messages[-2:] == (Message(role="assistant", content="could not"), again)
    log.add_run(
        "r2",
        run_started("r1"),
        plan_updated("resumed"),
        step_started(cache="resumed"),
        message_added("assistant", "still not"),
    )
    assert log.unfinished().steps["a"].messages[-2:] == (again, Message(role="assistant", content="still not"))


def test_a_chain_of_runs_has_one_conversation(log: LogBuilder) -> None:
    log.add_run(
        "r1",
        *RUN_START,
        step_started(),
        message_added("assistant", "", ("c1", "run_command")),
        tool_started("c1", "run_command"),
    )
    log.add_run(
        "other",
        run_started(model="y"),
        message_added("user", "something else", step=None),
        plan_updated(),
        run_completed("success"),
    )
    log.add_run(
        "r2",
        run_started("r1", model="z"),
        message_added("user", "the request", step=None),
        plan_updated("resumed"),
        step_started(cache="resumed"),
        message_added("assistant", "", ("c1", "read_file")),
        tool_started("c1", "read_file"),
        step_completed("cancelled"),
        run_completed("error_interrupted"),
    )
    log.add_run("r3", run_started("r2"))
    for name in ("r1", "r2", "r3"):
        run = log.unfinished(name)
        assert (run.run_id, run.lineage, run.request, run.model) == ("r3", "r1", "the request", "script:x")
        assert run.steps["a"].messages == (
            assistant_calls(("c1", "run_command")),
            tool_result("c1", UNKNOWN_CALL),
            assistant_calls(("c1", "read_file")),
            tool_result("c1", CANCELLED_CALL),
        )


def test_a_restarted_step_forgets_its_earlier_conversation(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started(), message_added("assistant", "first"))
    log.add_run("r2", run_started("r1"), plan_updated("resumed"), step_started(), message_added("assistant", "second"))
    assert [message.content for message in log.unfinished().steps["a"].messages] == ["second"]


def test_a_successful_run_cannot_be_resumed_but_a_partial_one_can(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, run_completed("partial"))
    assert log.unfinished().run_id == "r1"
    log.add_run("r2", run_started("r1"), plan_updated("resumed"), run_completed("success"))
    with pytest.raises(RunIsFinished, match="run r2 finished successfully"):
        log.unfinished("r1")
