"""What a run that was cut off at any moment leaves for the next one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from agent.protocol.codec import to_line
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    CallMade,
    Envelope,
    Event,
    FilesChanged,
    MessageSaid,
    PlanMade,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.sessions.unfinished import RunIsFinished, unfinished_run
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import Subtype
from agent.vocabulary.unfinished import CANCELLED_CALL, UNKNOWN_CALL, UnfinishedRun, UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.action import Effect
from tooling.contract.result import FileChange
from tooling.contract.shape import encode

Told: TypeAlias = tuple[str | None, Event]
EFFECTS: dict[str, Effect] = {"run_command": "execute", "write_file": "write", "read_file": "read"}
PLAN = (
    PlanStep(id="a", title="A", instruction="Do a"),
    PlanStep(id="b", title="B", instruction="Do b", depends_on=("a",)),
    PlanStep(id="t", title="T", instruction="", type="tool", tool="run_command", args={"command": "make"}),
)


def began(resumes: str | None = None, model: str = "script:x") -> Told:
    return None, RunStarted(
        model=model, planner_model="", cwd="/w", workspace="/w", backend="", approval_mode="", tools=(), resumes=resumes
    )


def planned(reason: str = "request", steps: tuple[PlanStep, ...] = PLAN) -> Told:
    return None, PlanMade(plan_id="p", revision=1, hash="h", reason=reason, steps=steps)


def says(role: str, content: str, *calls: tuple[str, str], step: str | None = "a", **more: str) -> Told:
    made = tuple(CallMade(id=name, name=tool, input={"x": name}) for name, tool in calls)
    return step, MessageSaid(role=role, content=content, tool_calls=made or None, **more)


def starts(name: str, tool: str, step: str = "a") -> Told:
    return step, ToolStarted(tool_id=name, name=tool, input={"x": name})


def ends(name: str, tool: str, output: str = "out", step: str = "a", **more: object) -> Told:
    given: dict[str, object] = {"status": "ok", "exit_code": 0, **more}
    return step, ToolCompleted(tool_id=name, name=tool, output=output, **given)  # type: ignore[arg-type]


def step_starts(step: str = "a", cache: str = "miss") -> Told:
    return step, StepStarted(title="A", cache=cache)  # type: ignore[arg-type]


def step_ends(status: str, step: str = "a", usage: Usage | None = None) -> Told:
    return step, StepCompleted(status=status, summary="", usage=usage or Usage())  # type: ignore[arg-type]


def run_ends(subtype: Subtype) -> Told:
    return None, RunCompleted(subtype=subtype, is_error=subtype != "success", exit_code=0, result="")


BEGUN = (began(), says("user", "the request", step=None), says("context", "<stdin>x</stdin>", step=None), planned())


class Log:
    """A log to write runs into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seq = 0

    def run(self, run_id: str, *told: Told) -> None:
        with self.path.open("ab") as file:
            for step, event in told:
                self._seq += 1
                attempt = None if step is None else 1
                place = Envelope(
                    seq=self._seq, ts="t", session_id="s", run_id=run_id, event=event, step_id=step, attempt=attempt
                )
                file.write(to_line(place))

    def unfinished(self, run_id: str = "r1") -> UnfinishedRun:
        return unfinished_run(self.path, run_id, EFFECTS.get)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "events.jsonl")


def talk_of(log: Log, *told: Told) -> UnfinishedStep:
    log.run("r1", *BEGUN, step_starts(), *told)
    return log.unfinished().steps["a"]


def calls(*names: tuple[str, str], content: str = "") -> Message:
    made = tuple(ToolCall(id=name, name=tool, arguments={"x": name}) for name, tool in names)
    return Message(role="assistant", content=content, tool_calls=made)


def hears(name: str, content: str) -> Message:
    return Message(role="tool", content=content, tool_call_id=name)


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
    log.run("r1", *BEGUN, step_starts(), says("assistant", "done"), step_ends("ok"))
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
    used = Usage(input_tokens=5)
    turn = (says("assistant", "", ("c1", "read_file")), starts("c1", "read_file"), ends("c1", "read_file"))
    told = talk_of(log, *turn, step_ends(status, usage=used))
    assert (len(told.messages), told.usage) == (2, used)


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


def test_a_finished_run_is_told_apart_from_one_that_failed(log: Log) -> None:
    log.run("r1", *BEGUN, run_ends("partial"))
    assert log.unfinished().run_id == "r1"
    log.run("r2", began("r1"), planned("resumed"), run_ends("success"))
    with pytest.raises(RunIsFinished, match="run r2 finished successfully"):
        log.unfinished("r1")


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
