"""The state of a run that was interrupted at any moment can be rebuilt from its log."""

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
    message_added,
    plan_updated,
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


def test_the_state_has_the_request_the_context_and_the_newest_plan(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, plan_updated("complete", PLAN[:1]))
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
    ("reasons", "is_complete", "is_given", "replans", "answers"),
    [
        (["streaming"], False, False, 0, 0),
        (["streaming", "complete"], True, False, 0, 0),
        (["file"], True, False, 0, 0),
        (["request", "surprise: gone", 'answer: "blue"', "surprise: again"], True, False, 2, 1),
        (["request", "assumption: nobody could be asked"], True, False, 0, 0),
    ],
)
def test_plan_reasons_determine_completeness_replans_and_answers(
    log: LogBuilder, reasons: list[str], is_complete: bool, is_given: bool, replans: int, answers: int
) -> None:
    log.add_run("r1", *RUN_START[:3], *map(plan_updated, reasons))
    run = log.unfinished()
    assert (run.is_plan_complete, run.is_plan_given, run.replans, run.clarifications) == (
        is_complete,
        is_given,
        replans,
        answers,
    )


def test_a_run_killed_before_planning_has_no_plan(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START[:2])
    run = log.unfinished()
    assert (run.request, run.plan, run.is_plan_complete, run.steps) == ("the request", (), False, {})


def test_a_step_without_messages_starts_from_scratch(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started())
    assert log.unfinished().steps == {}


def test_a_finished_step_is_not_unfinished(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START, step_started(), message_added("assistant", "done"), step_completed("ok", key="k"))
    assert log.unfinished().steps == {}


def test_the_conversation_of_a_step_is_rebuilt_with_its_facts(log: LogBuilder) -> None:
    changed = FileChange(path="a.txt", status="added")
    step = rebuild_step(
        log,
        message_added("assistant", "", reasoning="hm", reasoning_signature="sig", reasoning_model="m"),
        message_added("user", "Go on."),
        message_added("assistant", "I write", ("c1", "write_file")),
        tool_started("c1", "write_file"),
        ("a", FilesChanged(changes=(changed,))),
        tool_completed("c1", "write_file", "written"),
        message_added("assistant", "all done"),
    )
    assert step.messages == (
        Message(role="assistant", reasoning="hm", reasoning_signature="sig", reasoning_model="m"),
        Message(role="user", content="Go on."),
        assistant_calls(("c1", "write_file"), content="I write"),
        tool_result("c1", "written"),
        Message(role="assistant", content="all done"),
    )
    assert step.turns == 3
    assert [(fact.tool, fact.args, fact.status, fact.changed) for fact in step.facts] == [
        ("write_file", {"x": "c1"}, "ok", ("a.txt",))
    ]


def test_results_are_in_the_order_of_their_calls(log: LogBuilder) -> None:
    pair = (("c1", "read_file"), ("c2", "read_file"))
    step = rebuild_step(
        log,
        message_added("assistant", "", *pair),
        *(tool_started(*call) for call in pair),
        tool_completed("c2", "read_file", "two"),
        tool_completed("c1", "read_file", "one"),
    )
    assert step.messages == (assistant_calls(*pair), tool_result("c1", "one"), tool_result("c2", "two"))


def test_a_reused_call_id_belongs_to_its_own_turn(log: LogBuilder) -> None:
    turn = (message_added("assistant", "", ("c1", "read_file")), tool_started("c1", "read_file"))
    step = rebuild_step(
        log, *turn, tool_completed("c1", "read_file", "first"), *turn, tool_completed("c1", "read_file", "second")
    )
    assert [message.content for message in step.messages if message.role == "tool"] == ["first", "second"]


@pytest.mark.parametrize(
    ("tool", "has_started", "text"),
    [
        ("run_command", True, UNKNOWN_CALL),
        ("write_file", True, UNKNOWN_CALL),
        ("a_removed_tool", True, UNKNOWN_CALL),
        ("read_file", True, CANCELLED_CALL),
        ("run_command", False, CANCELLED_CALL),
    ],
)
def test_a_call_without_a_result_gets_one(log: LogBuilder, tool: str, has_started: bool, text: str) -> None:
    step = rebuild_step(
        log, message_added("assistant", "", ("c1", tool)), *([tool_started("c1", tool)] if has_started else [])
    )
    assert step.messages == (assistant_calls(("c1", tool)), tool_result("c1", text))
    assert [(fact.status, fact.exit_code) for fact in step.facts] == [("cancelled", 130)]


def test_of_several_calls_only_the_running_one_is_unknown(log: LogBuilder) -> None:
    three = (("c1", "run_command"), ("c2", "run_command"), ("c3", "run_command"))
    step = rebuild_step(
        log,
        message_added("assistant", "", *three),
        tool_started("c1", "run_command"),
        tool_completed("c1", "run_command", "one"),
        tool_started("c2", "run_command"),
    )
    assert step.messages[1:] == (
        tool_result("c1", "one"),
        tool_result("c2", UNKNOWN_CALL),
        tool_result("c3", CANCELLED_CALL),
    )


@pytest.mark.parametrize(("is_resolved", "text"), [(False, CANCELLED_CALL), (True, UNKNOWN_CALL)])
def test_a_call_waiting_for_approval_had_not_started(log: LogBuilder, is_resolved: bool, text: str) -> None:
    asked = ApprovalRequested(approval_id="i", command="x", cwd="/", reason="", rule="")
    yes = ApprovalResolved(approval_id="i", decision="allow", by="person")
    step = rebuild_step(
        log,
        message_added("assistant", "", ("c1", "run_command")),
        tool_started("c1", "run_command"),
        ("a", asked),
        *([("a", yes)] if is_resolved else []),
    )
    assert step.messages[-1] == tool_result("c1", text)


def test_a_check_is_not_part_of_the_conversation(log: LogBuilder) -> None:
    step = rebuild_step(
        log,
        message_added("assistant", "done"),
        tool_started("a.check.1", "run_command"),
        tool_completed("a.check.1", "run_command", "no", status="error", exit_code=1),
        message_added("user", "The check failed"),
        message_added("assistant", "fixed"),
        tool_started("a.check.2", "run_command"),
    )
    assert [message.content for message in step.messages] == ["done", "The check failed", "fixed"]
    assert step.facts == ()


@pytest.mark.parametrize("status", ["cancelled", "timeout", "error", "blocked", "needs_input"])
def test_an_unsuccessful_step_keeps_its_conversation(log: LogBuilder, status: str) -> None:
    turn = (
        message_added("assistant", "", ("c1", "read_file")),
        tool_started("c1", "read_file"),
        tool_completed("c1", "read_file"),
    )
    step = rebuild_step(log, *turn, step_completed(status))
    assert len(step.messages) == 2


@pytest.mark.parametrize(
    ("events", "expected"),
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
def test_the_call_of_a_tool_step_is_done_unknown_or_not_made(
    log: LogBuilder, events: Sequence[StepEvent], expected: tuple[str, int] | None
) -> None:
    log.add_run("r1", *RUN_START, step_started("t"), *events)
    step = log.unfinished().steps.get("t")
    assert (step and (step.messages[-1].content, len(step.facts))) == expected


def test_steps_removed_from_the_plan_are_ignored(log: LogBuilder) -> None:
    log.add_run(
        "r1", *RUN_START, step_started(), message_added("assistant", "x"), plan_updated("surprise: no", PLAN[1:])
    )
    assert log.unfinished().steps == {}


def test_an_unknown_run_is_refused(log: LogBuilder) -> None:
    log.add_run("r1", *RUN_START)
    with pytest.raises(InputError, match="no run 'r9'"):
        log.unfinished("r9")


def test_only_an_incomplete_last_line_is_lost(log: LogBuilder) -> None:
    log.add_run(
        "r1", *RUN_START, step_started(), message_added("assistant", "kept"), message_added("assistant", "torn off")
    )
    log.path.write_bytes(log.path.read_bytes()[:-9])
    assert [message.content for message in log.unfinished().steps["a"].messages] == ["kept"]


@pytest.mark.parametrize("reasons", [[], ["file"], ["file", "resumed"]])
def test_a_given_plan_is_known_before_it_is_announced(log: LogBuilder, reasons: list[str]) -> None:
    given = message_added("plan", json.dumps(encode(PLAN)), step=None)
    log.add_run(
        "r1", run_started(), given, message_added("user", "the request", step=None), *map(plan_updated, reasons)
    )
    run = log.unfinished()
    assert (run.plan, run.is_plan_complete, run.is_plan_given) == (PLAN, True, True)
