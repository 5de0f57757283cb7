"""What a run that was cut off at any moment leaves for the next one."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    FilesChanged,
)
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message
from agent.vocabulary.unfinished import CANCELLED_CALL, UNKNOWN_CALL, UnfinishedRun
from tests.agent.sessions.recorded_events import (
    BEGUN,
    PLAN,
    Log,
    Told,
    began,
    calls,
    ends,
    hears,
    planned,
    says,
    starts,
    step_ends,
    step_starts,
    talk_of,
)
from tooling.contract.json_codec import encode
from tooling.contract.result import FileChange


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "events.jsonl")


def test_a_run_is_known_by_its_request_its_context_and_its_newest_plan(log: Log) -> None:
    log.run("r1", *BEGUN, planned("complete", PLAN[:1]))
    assert log.unfinished() == UnfinishedRun(
        run_id="r1",
        lineage="r1",
        request="the request",
        context="<stdin>x</stdin>",
        model="script:x",
        plan=PLAN[:1],
        is_plan_complete=True,
    )


@pytest.mark.parametrize(
    ("reasons", "is_complete", "is_as_written", "replans", "answers"),
    [
        (["streaming"], False, False, 0, 0),
        (["streaming", "complete"], True, False, 0, 0),
        (["file"], True, False, 0, 0),
        (["request", "surprise: gone", 'answer: "blue"', "surprise: again"], True, False, 2, 1),
        (["request", "assumption: nobody could be asked"], True, False, 0, 0),
    ],
)
def test_the_reasons_of_its_plans_tell_what_is_still_to_be_planned(
    log: Log, reasons: list[str], is_complete: bool, is_as_written: bool, replans: int, answers: int
) -> None:
    log.run("r1", *BEGUN[:3], *map(planned, reasons))
    run = log.unfinished()
    assert (run.is_plan_complete, run.is_as_written, run.replans, run.clarifications) == (
        is_complete,
        is_as_written,
        replans,
        answers,
    )


def test_a_run_that_died_before_its_plan_has_none(log: Log) -> None:
    log.run("r1", *BEGUN[:2])
    run = log.unfinished()
    assert (run.request, run.plan, run.is_plan_complete, run.steps) == ("the request", (), False, {})


def test_a_step_with_nothing_said_starts_afresh(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts())
    assert log.unfinished().steps == {}


def test_a_finished_step_is_not_among_those_that_had_begun(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts(), says("assistant", "done"), step_ends("ok", key="k"))
    assert log.unfinished().steps == {}


def test_the_conversation_of_a_step_is_whole_with_its_facts(log: Log) -> None:
    changed = FileChange(path="a.txt", status="added")
    told = talk_of(
        log,
        says("assistant", "", reasoning="hm", reasoning_signature="sig"),
        says("user", "Go on."),
        says("assistant", "I write", ("c1", "write_file")),
        starts("c1", "write_file"),
        ("a", FilesChanged(changes=(changed,))),
        ends("c1", "write_file", "written"),
        says("assistant", "all done"),
    )
    assert told.messages == (
        Message(role="assistant", reasoning="hm", reasoning_signature="sig"),
        Message(role="user", content="Go on."),
        calls(("c1", "write_file"), content="I write"),
        hears("c1", "written"),
        Message(role="assistant", content="all done"),
    )
    assert told.turns == 3
    assert [(fact.tool, fact.args, fact.status, fact.changed) for fact in told.facts] == [
        ("write_file", {"x": "c1"}, "ok", ("a.txt",))
    ]


def test_results_stand_in_the_order_of_their_calls(log: Log) -> None:
    pair = (("c1", "read_file"), ("c2", "read_file"))
    told = talk_of(
        log,
        says("assistant", "", *pair),
        *(starts(*call) for call in pair),
        ends("c2", "read_file", "two"),
        ends("c1", "read_file", "one"),
    )
    assert told.messages == (calls(*pair), hears("c1", "one"), hears("c2", "two"))


def test_an_id_that_a_provider_uses_again_belongs_to_its_own_turn(log: Log) -> None:
    turn = (says("assistant", "", ("c1", "read_file")), starts("c1", "read_file"))
    told = talk_of(log, *turn, ends("c1", "read_file", "first"), *turn, ends("c1", "read_file", "second"))
    assert [message.content for message in told.messages if message.role == "tool"] == ["first", "second"]


@pytest.mark.parametrize(
    ("tool", "has_begun", "text"),
    [
        ("run_command", True, UNKNOWN_CALL),
        ("write_file", True, UNKNOWN_CALL),
        ("a_tool_that_is_gone", True, UNKNOWN_CALL),
        ("read_file", True, CANCELLED_CALL),
        ("run_command", False, CANCELLED_CALL),
    ],
)
def test_a_call_without_a_result_gets_one(log: Log, tool: str, has_begun: bool, text: str) -> None:
    told = talk_of(log, says("assistant", "", ("c1", tool)), *([starts("c1", tool)] if has_begun else []))
    assert told.messages == (calls(("c1", tool)), hears("c1", text))
    assert [(fact.status, fact.exit_code) for fact in told.facts] == [("cancelled", 130)]


def test_of_several_calls_only_the_one_that_ran_is_unknown(log: Log) -> None:
    three = (("c1", "run_command"), ("c2", "run_command"), ("c3", "run_command"))
    told = talk_of(
        log,
        says("assistant", "", *three),
        starts("c1", "run_command"),
        ends("c1", "run_command", "one"),
        starts("c2", "run_command"),
    )
    assert told.messages[1:] == (hears("c1", "one"), hears("c2", UNKNOWN_CALL), hears("c3", CANCELLED_CALL))


@pytest.mark.parametrize(("is_resolved", "text"), [(False, CANCELLED_CALL), (True, UNKNOWN_CALL)])
def test_a_call_that_waited_for_a_yes_was_not_run(log: Log, is_resolved: bool, text: str) -> None:
    asked = ApprovalRequested(approval_id="i", command="x", cwd="/", reason="", rule="")
    yes = ApprovalResolved(approval_id="i", decision="allow", by="person")
    told = talk_of(
        log,
        says("assistant", "", ("c1", "run_command")),
        starts("c1", "run_command"),
        ("a", asked),
        *([("a", yes)] if is_resolved else []),
    )
    assert told.messages[-1] == hears("c1", text)


def test_a_check_is_no_part_of_the_conversation(log: Log) -> None:
    told = talk_of(
        log,
        says("assistant", "done"),
        starts("a.check.1", "run_command"),
        ends("a.check.1", "run_command", "no", status="error", exit_code=1),
        says("user", "The check failed"),
        says("assistant", "mended"),
        starts("a.check.2", "run_command"),
    )
    assert [message.content for message in told.messages] == ["done", "The check failed", "mended"]
    assert told.facts == ()


@pytest.mark.parametrize("status", ["cancelled", "timeout", "error", "blocked", "needs_input"])
def test_a_step_that_did_not_succeed_goes_on_with_its_conversation(log: Log, status: str) -> None:
    turn = (says("assistant", "", ("c1", "read_file")), starts("c1", "read_file"), ends("c1", "read_file"))
    told = talk_of(log, *turn, step_ends(status))
    assert len(told.messages) == 2


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], None),
        ([starts("t.call", "run_command", "t")], (UNKNOWN_CALL, 0)),
        ([starts("t.call", "read_file", "t")], None),
        ([starts("t.call", "run_command", "t"), ends("t.call", "run_command", "made", "t")], ("made", 1)),
        (
            [
                starts("t.call", "run_command", "t"),
                ends("t.call", "run_command", UNKNOWN_CALL, "t", status="cancelled", exit_code=130),
                step_ends("cancelled", "t"),
            ],
            (UNKNOWN_CALL, 0),
        ),
        (
            [
                starts("t.call", "run_command", "t"),
                ends("t.call", "run_command", "no rule", "t", status="error", exit_code=2),
            ],
            None,
        ),
        (
            [
                starts("t.call", "run_command", "t"),
                ends("t.call", "run_command", "made", "t"),
                starts("t.check.1", "run_command", "t"),
            ],
            ("made", 1),
        ),
        (
            [
                starts("t.call", "run_command", "t"),
                ends("t.call", "run_command", "made", "t"),
                starts("t.check.1", "run_command", "t"),
                ends("t.check.1", "run_command", "no", "t", status="error", exit_code=1),
                step_ends("error", "t"),
            ],
            None,
        ),
    ],
)
def test_the_call_of_a_tool_step_is_done_unknown_or_yet_to_be_made(
    log: Log, told: Sequence[Told], expected: tuple[str, int] | None
) -> None:
    log.run("r1", *BEGUN, step_starts("t"), *told)
    begun = log.unfinished().steps.get("t")
    assert (begun and (begun.messages[-1].content, len(begun.facts))) == expected


def test_steps_that_left_the_plan_are_forgotten(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts(), says("assistant", "x"), planned("surprise: no", PLAN[1:]))
    assert log.unfinished().steps == {}


def test_a_run_that_is_not_there_is_refused(log: Log) -> None:
    log.run("r1", *BEGUN)
    with pytest.raises(InputError, match="no run 'r9'"):
        log.unfinished("r9")


def test_a_torn_end_costs_only_itself(log: Log) -> None:
    log.run("r1", *BEGUN, step_starts(), says("assistant", "kept"), says("assistant", "torn off"))
    log.path.write_bytes(log.path.read_bytes()[:-9])
    assert [message.content for message in log.unfinished().steps["a"].messages] == ["kept"]


@pytest.mark.parametrize("reasons", [[], ["file"], ["file", "resumed"]])
def test_a_plan_that_was_given_is_known_from_the_first_moment_on(log: Log, reasons: list[str]) -> None:
    given = says("plan", json.dumps(encode(PLAN)), step=None)
    log.run("r1", began(), given, says("user", "the request", step=None), *map(planned, reasons))
    run = log.unfinished()
    assert (run.plan, run.is_plan_complete, run.is_as_written) == (PLAN, True, True)
