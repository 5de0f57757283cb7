"""Runs that go on with each other are one conversation."""

from pathlib import Path

import pytest

from agent.sessions.resume.resume_state import RunIsFinished
from agent.vocabulary.message import Message
from agent.vocabulary.unfinished import CANCELLED_CALL, TRY_AGAIN, UNKNOWN_CALL
from tests.agent.sessions.recorded_events import (
    BEGUN,
    Log,
    began,
    calls,
    ends,
    hears,
    planned,
    run_ends,
    says,
    starts,
    step_ends,
    step_starts,
    talk_of,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "events.jsonl")


def test_a_step_that_came_to_its_end_goes_on_with_turns_of_its_own(log: Log) -> None:
    turn = (says("assistant", "", ("c1", "read_file")), starts("c1", "read_file"), ends("c1", "read_file"))
    told = talk_of(log, *turn, step_ends("partial"))
    assert (len(told.messages), told.turns) == (2, 0)


@pytest.mark.parametrize("status", ["denied", "deferred", "blocked"])
def test_what_was_refused_may_be_tried_again_by_the_next_run(log: Log, status: str) -> None:
    refused = ends("c1", "run_command", "no", status=status, exit_code=126)
    turn = (says("assistant", "", ("c1", "run_command")), starts("c1", "run_command"), refused)
    log.run("r1", *BEGUN, step_starts(), *turn, says("assistant", "could not"), step_ends("partial"))
    again = Message(role="user", content=TRY_AGAIN)
    assert log.unfinished().steps["a"].messages[-2:] == (Message(role="assistant", content="could not"), again)
    log.run("r2", began("r1"), planned("resumed"), step_starts(cache="resumed"), says("assistant", "still not"))
    assert log.unfinished().steps["a"].messages[-2:] == (again, Message(role="assistant", content="still not"))


def test_a_chain_of_runs_is_one_conversation(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts(), says("assistant", "", ("c1", "run_command")), starts("c1", "run_command"))
    log.run("other", began(model="y"), says("user", "something else", step=None), planned(), run_ends("success"))
    log.run(
        "r2",
        began("r1", model="z"),
        says("user", "the request", step=None),
        planned("resumed"),
        step_starts(cache="resumed"),
        says("assistant", "", ("c1", "read_file")),
        starts("c1", "read_file"),
        step_ends("cancelled"),
        run_ends("error_interrupted"),
    )
    log.run("r3", began("r2"))
    for name in ("r1", "r2", "r3"):
        run = log.unfinished(name)
        assert (run.run_id, run.lineage, run.request, run.model) == ("r3", "r1", "the request", "script:x")
        assert run.steps["a"].messages == (
            calls(("c1", "run_command")),
            hears("c1", UNKNOWN_CALL),
            calls(("c1", "read_file")),
            hears("c1", CANCELLED_CALL),
        )


def test_a_step_that_was_begun_anew_forgets_its_first_beginning(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts(), says("assistant", "first"))
    log.run("r2", began("r1"), planned("resumed"), step_starts(), says("assistant", "second"))
    assert [message.content for message in log.unfinished().steps["a"].messages] == ["second"]


def test_a_finished_run_is_told_apart_from_one_that_failed(log: Log) -> None:
    log.run("r1", *BEGUN, run_ends("partial"))
    assert log.unfinished().run_id == "r1"
    log.run("r2", began("r1"), planned("resumed"), run_ends("success"))
    with pytest.raises(RunIsFinished, match="run r2 finished successfully"):
        log.unfinished("r1")
