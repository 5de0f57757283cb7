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
    PLAN,
    RUN_START,
    LogBuilder,
    StepEvent,
    assistant_calls,
    message_said,
    plan_made,
    rebuild_step,
    run_started,
    step_completed,
    step_started,
    tool_completed,
    tool_result,
    tool_started,
)
from tooling.contract.json_codec import encode
from tooling.contract.result import FileChange


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "events.jsonl")


def test_a_run_is_known_by_its_request_its_context_and_its_newest_plan(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, plan_made("complete", PLAN[:1]))
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
    log: LogBuilder, reasons: list[str], is_complete: bool, is_as_written: bool, replans: int, answers: int
) -> None:
    log.add_run("r1", *RUN_START[:3], *map(plan_made, reasons))
    run = log.unfinished()
    assert (run.is_plan_complete, run.is_plan_given, run.replans, run.clarifications) == (
        is_complete,
        is_as_written,
        replans,
        answers,
    )


def test_a_run_that_died_before_its_plan_has_none(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START[:2])
    run = log.unfinished()
    assert (run.request, run.plan, run.is_plan_complete, run.steps) == ("the request", (), False, {})


def test_a_step_with_nothing_said_starts_afresh(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started())
    assert log.unfinished().steps == {}


def test_a_finished_step_is_not_among_those_that_had_begun(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started(), message_said("assistant", "done"), step_completed("ok", key="k"))
    assert log.unfinished().steps == {}


def test_the_conversation_of_a_step_is_whole_with_its_facts(log: LogBuilder) -> None:
    changed = FileChange(path="a.txt", status="added")
    told = rebuild_step(
        log,
        message_said("assistant", "", reasoning="hm", reasoning_signature="sig"),
        message_said("user", "Go on."),
        message_said("assistant", "I write", ("c1", "write_file")),
        tool_started("c1", "write_file"),
        ("a", FilesChanged(changes=(changed,))),
        tool_completed("c1", "write_file", "written"),
        message_said("assistant", "all done"),
    )
    assert told.messages == (
        Message(role="assistant", reasoning="hm", reasoning_signature="sig"),
        Message(role="user", content="Go on."),
        assistant_calls(("c1", "write_file"), content="I write"),
        tool_result("c1", "written"),
        Message(role="assistant", content="all done"),
    )
    assert told.turns == 3
    assert [(fact.tool, fact.args, fact.status, fact.changed) for fact in told.facts] == [
        ("write_file", {"x": "c1"}, "ok", ("a.txt",))
    ]


def test_results_stand_in_the_order_of_their_calls(log: LogBuilder) -> None:
    pair = (("c1", "read_file"), ("c2", "read_file"))
    told = rebuild_step(
        log,
        message_said("assistant", "", *pair),
        *(tool_started(*call) for call in pair),
        tool_completed("c2", "read_file", "two"),
        tool_completed("c1", "read_file", "one"),
    )
    assert told.messages == (assistant_calls(*pair), tool_result("c1", "one"), tool_result("c2", "two"))


def test_an_id_that_a_provider_uses_again_belongs_to_its_own_turn(log: LogBuilder) -> None:
    turn = (message_said("assistant", "", ("c1", "read_file")), tool_started("c1", "read_file"))
    told = rebuild_step(
        log, *turn, tool_completed("c1", "read_file", "first"), *turn, tool_completed("c1", "read_file", "second")
    )
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
def test_a_call_without_a_result_gets_one(log: LogBuilder, tool: str, has_begun: bool, text: str) -> None:
    told = rebuild_step(
        log, message_said("assistant", "", ("c1", tool)), *([tool_started("c1", tool)] if has_begun else [])
    )
    assert told.messages == (assistant_calls(("c1", tool)), tool_result("c1", text))
    assert [(fact.status, fact.exit_code) for fact in told.facts] == [("cancelled", 130)]


def test_of_several_calls_only_the_one_that_ran_is_unknown(log: LogBuilder) -> None:
    three = (("c1", "run_command"), ("c2", "run_command"), ("c3", "run_command"))
    told = rebuild_step(
        log,
        message_said("assistant", "", *three),
        tool_started("c1", "run_command"),
        tool_completed("c1", "run_command", "one"),
        tool_started("c2", "run_command"),
    )
    assert told.messages[1:] == (
        tool_result("c1", "one"),
        tool_result("c2", UNKNOWN_CALL),
        tool_result("c3", CANCELLED_CALL),
    )


@pytest.mark.parametrize(("is_resolved", "text"), [(False, CANCELLED_CALL), (True, UNKNOWN_CALL)])
def test_a_call_that_waited_for_a_yes_was_not_run(log: LogBuilder, is_resolved: bool, text: str) -> None:
    asked = ApprovalRequested(approval_id="i", command="x", cwd="/", reason="", rule="")
    yes = ApprovalResolved(approval_id="i", decision="allow", by="person")
    told = rebuild_step(
        log,
        message_said("assistant", "", ("c1", "run_command")),
        tool_started("c1", "run_command"),
        ("a", asked),
        *([("a", yes)] if is_resolved else []),
    )
    assert told.messages[-1] == tool_result("c1", text)


def test_a_check_is_no_part_of_the_conversation(log: LogBuilder) -> None:
    told = rebuild_step(
        log,
        message_said("assistant", "done"),
        tool_started("a.check.1", "run_command"),
        tool_completed("a.check.1", "run_command", "no", status="error", exit_code=1),
        message_said("user", "The check failed"),
        message_said("assistant", "mended"),
        tool_started("a.check.2", "run_command"),
    )
    assert [message.content for message in told.messages] == ["done", "The check failed", "mended"]
    assert told.facts == ()


@pytest.mark.parametrize("status", ["cancelled", "timeout", "error", "blocked", "needs_input"])
def test_a_step_that_did_not_succeed_goes_on_with_its_conversation(log: LogBuilder, status: str) -> None:
    turn = (
        message_said("assistant", "", ("c1", "read_file")),
        tool_started("c1", "read_file"),
        tool_completed("c1", "read_file"),
    )
    told = rebuild_step(log, *turn, step_completed(status))
    assert len(told.messages) == 2


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], None),
        ([tool_started("t.call", "run_command", "t")], (UNKNOWN_CALL, 0)),
        ([tool_started("t.call", "read_file", "t")], None),
        (
            [tool_started("t.call", "run_command", "t"), tool_completed("t.call", "run_command", "made", "t")],
            ("made", 1),
        ),
        (
            [
                tool_started("t.call", "run_command", "t"),
                tool_completed("t.call", "run_command", UNKNOWN_CALL, "t", status="cancelled", exit_code=130),
                step_completed("cancelled", "t"),
            ],
            (UNKNOWN_CALL, 0),
        ),
        (
            [
                tool_started("t.call", "run_command", "t"),
                tool_completed("t.call", "run_command", "no rule", "t", status="error", exit_code=2),
            ],
            None,
        ),
        (
            [
                tool_started("t.call", "run_command", "t"),
                tool_completed("t.call", "run_command", "made", "t"),
                tool_started("t.check.1", "run_command", "t"),
            ],
            ("made", 1),
        ),
        (
            [
                tool_started("t.call", "run_command", "t"),
                tool_completed("t.call", "run_command", "made", "t"),
                tool_started("t.check.1", "run_command", "t"),
                tool_completed("t.check.1", "run_command", "no", "t", status="error", exit_code=1),
                step_completed("error", "t"),
            ],
            None,
        ),
    ],
)
def test_the_call_of_a_tool_step_is_done_unknown_or_yet_to_be_made(
    log: LogBuilder, told: Sequence[StepEvent], expected: tuple[str, int] | None
) -> None:
    log.add_run("r1", *RUN_START, step_started("t"), *told)
    begun = log.unfinished().steps.get("t")
    assert (begun and (begun.messages[-1].content, len(begun.facts))) == expected


def test_steps_that_left_the_plan_are_forgotten(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started(), message_said("assistant", "x"), plan_made("surprise: no", PLAN[1:]))
    assert log.unfinished().steps == {}


def test_a_run_that_is_not_there_is_refused(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START)
    with pytest.raises(InputError, match="no run 'r9'"):
        log.unfinished("r9")


def test_a_torn_end_costs_only_itself(log: LogBuilder) -> None:
    log.add_run(
        "r1", *RUN_START, step_started(), message_said("assistant", "kept"), message_said("assistant", "torn off")
    )
    log.path.write_bytes(log.path.read_bytes()[:-9])
    assert [message.content for message in log.unfinished().steps["a"].messages] == ["kept"]


@pytest.mark.parametrize("reasons", [[], ["file"], ["file", "resumed"]])
def test_a_plan_that_was_given_is_known_from_the_first_moment_on(log: LogBuilder, reasons: list[str]) -> None:
    given = message_said("plan", json.dumps(encode(PLAN)), step=None)
    log.add_run("r1", run_started(), given, message_said("user", "the request", step=None), *map(plan_made, reasons))
    run = log.unfinished()
    assert (run.plan, run.is_plan_complete, run.is_plan_given) == (PLAN, True, True)
