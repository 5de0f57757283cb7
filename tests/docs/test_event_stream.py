"""Real runs with every kind of ending: each line validates against the schema, each stream follows the grammar."""

import json
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jsonschema
import pexpect
import pytest

from tests.cli.terminal_user import (
    User,
    answer,
    composer_reply,
    event_types,
    hand_out,
    lead_call,
    lead_reply,
    plan,
    step,
    step_call,
    step_reply,
)
from tests.docs.event_schema import schema
from tests.docs.grammar import broken_rules
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
VALIDATOR = jsonschema.Draft202012Validator(schema(is_strict=True))
STREAM = ("--output-format", "stream-json")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run, and what its stream must contain besides being valid."""

    replies: tuple[dict[str, object], ...]
    exit_code: int
    expected_types: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


def command(line: str) -> dict[str, object]:
    return lead_call("run_command", command=line)


SUMMARY = {"match": {"purpose": "summary"}, "repeat": True, "text": "Numbers were counted."}
USED = {"usage": {"input_tokens": 40_000, "output_tokens": 100}}
PLANNED = ("--planning", "always")
THREE_STEPS = (
    step_call("a", "write_file", path="a.txt", content="from a\n"),
    step_reply("a", "a is written"),
    {"match": {"step": "b"}, "tool_calls": [{"name": "list_directory", "arguments": {"path": "."}}] * 2},
    step_reply("b", "b is known"),
    step_call("c", "run_command", command="cat a.txt"),
    step_reply("c", "c has read a"),
)
OF_STEPS = ("plan", "step.started", "tool.started", "files", "tool.completed", "step.completed")
CASES = {
    "a direct answer": Case(replies=(lead_reply("4"),), exit_code=0, expected_types=("plan", "step.completed")),
    "a lead that works alone": Case(
        replies=(lead_call("write_file", path="a.txt", content="a\n"), command("cat a.txt"), lead_reply("It says a.")),
        exit_code=0,
        expected_types=OF_STEPS,
    ),
    "a lead that may not plan": Case(
        replies=(command("true"), lead_reply("Done.")), exit_code=0, args=("--planning", "never")
    ),
    "three steps of the lead": Case(
        replies=(
            hand_out(step("a", writes=["a.txt"]), step("b"), step("c", "a", "b")),
            *THREE_STEPS,
            lead_reply("All three are done."),
        ),
        exit_code=0,
        expected_types=OF_STEPS,
    ),
    "a failed step, and a lead that revises its plan": Case(
        replies=(
            hand_out(step("a"), step("b", "a")),
            {"match": {"step": "a"}, "fault": "refused"},
            hand_out(step("a2"), step("b", "a2")),
            step_reply("a2", "a is done"),
            step_reply("b", "b is done"),
            lead_reply("Done at the second attempt."),
        ),
        exit_code=0,
        expected_types=("step.completed",),
    ),
    "a failed step that nobody mends": Case(
        replies=(hand_out(step("a")), {"match": {"step": "a"}, "fault": "refused"}, lead_reply("It did not work.")),
        exit_code=1,
        expected_types=("step.completed",),
    ),
    "a fork of the conversation": Case(
        replies=(hand_out(step("a", context="fork")), step_reply("a", "a is done"), lead_reply("Done.")),
        exit_code=0,
        expected_types=("step.completed",),
    ),
    "a circle of steps of the lead": Case(
        replies=(hand_out(step("a", "b"), step("b", "a")), lead_reply("I cannot plan that.")), exit_code=0
    ),
    "a conversation that outgrows the window": Case(
        replies=(
            *(command(f"seq {count}") for count in range(2000, 2004)),
            {"match": {"purpose": "lead"}, "fault": "overflow"},
            SUMMARY,
            lead_reply("Counted."),
        ),
        exit_code=0,
        expected_types=("context",),
    ),
    "three steps of the planner": Case(
        replies=(
            plan(step("a", writes=["a.txt"]), step("b"), step("c", "a", "b")),
            *THREE_STEPS,
            composer_reply("All three are done."),
        ),
        exit_code=0,
        expected_types=OF_STEPS,
        args=PLANNED,
    ),
    "a direct answer of the planner": Case(replies=(answer("4"),), exit_code=0, args=PLANNED),
    "a plan that is only shown": Case(
        replies=(plan(step("a"), step("b", "a")),), exit_code=0, expected_types=("plan",), args=("--plan-only",)
    ),
    "a failed step and what needed it": Case(
        replies=(
            plan(step("a"), step("b", "a"), step("c")),
            {"match": {"step": "a"}, "fault": "refused"},
            step_reply("c", "c is done"),
            composer_reply("Only c is done."),
        ),
        exit_code=1,
        expected_types=("step.completed",),
        args=PLANNED,
    ),
    "a circle of steps of the planner": Case(
        replies=(plan(step("a", "b"), step("b", "a")),), exit_code=1, expected_types=("step.completed",), args=PLANNED
    ),
    "a denied command": Case(
        replies=(command("git push"), lead_reply("could not push")),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
    ),
    "a deferred command": Case(
        replies=(command("git push"), lead_reply("later")),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
        args=("--on-approval", "defer"),
    ),
    "a command that stops the run": Case(
        replies=(command("git push"),),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
        args=("--on-approval", "fail"),
    ),
    "a blocked command": Case(
        replies=(command("rm -rf /"), lead_reply("would not")), exit_code=57, args=("--approval-mode", "yolo")
    ),
    "arguments that are no arguments": Case(
        replies=(
            {"match": {"purpose": "lead"}, "tool_calls": [{"name": "read_file", "arguments": "{path: oh"}]},
            lead_call("no_such_tool", x=1),
            lead_reply("gave up"),
        ),
        exit_code=1,
        expected_types=("tool.completed",),
    ),
    "a tool that keeps failing": Case(
        replies=({**lead_call("read_file", path="missing"), "repeat": True},), exit_code=54
    ),
    "a question nobody can answer": Case(
        replies=(plan(step("q", type="ask_user", ask_question="Which?"), step("b", "q")),),
        exit_code=1,
        expected_types=("question.asked", "question.answered"),
        args=PLANNED,
    ),
    "a spent budget": Case(
        replies=(
            plan(step("a"), step("b", "a")),
            {**step_reply("a", "a is done"), **USED},
            step_reply("b", "never said"),
        ),
        exit_code=56,
        expected_types=("budget",),
        args=(*PLANNED, "--max-tokens", "20000"),
    ),
    "a budget that the lead has spent": Case(
        replies=({**command("true"), **USED}, lead_reply("never said")),
        exit_code=56,
        expected_types=("budget",),
        args=("--max-tokens", "20000"),
    ),
    "the wall clock": Case(
        replies=(command("sleep 60"),), exit_code=124, expected_types=("tool.started",), args=("--timeout", "2")
    ),
    "a provider that keeps failing": Case(
        replies=({"fault": "reset", "repeat": True},), exit_code=75, expected_types=("step.completed",)
    ),
    "a planner whose provider keeps failing": Case(
        replies=({"fault": "reset", "repeat": True},), exit_code=75, expected_types=("error",), args=PLANNED
    ),
    "an answer without a composer": Case(
        replies=(
            plan(step("a"), step("b")),
            step_reply("a", "one"),
            step_reply("b", "two"),
            {"match": {"purpose": "composer"}, "fault": "refused"},
        ),
        exit_code=0,
        expected_types=("warning",),
        args=PLANNED,
    ),
    "an input that is missing": Case(replies=(lead_reply("x"),), exit_code=42, args=("-f", "missing.txt")),
    "a setting that is wrong": Case(replies=(lead_reply("x"),), exit_code=2, args=("--set", "modle=x")),
}


def check_stream(events: Sequence[dict[str, object]]) -> None:
    """Check a stream against the schema and the grammar."""
    for event in events:
        VALIDATOR.validate(event)
    assert broken_rules(events) == [], "\n".join(map(str, events))


def stored_events(user: User) -> list[dict[str, object]]:
    """Return the log of the only session."""
    (log,) = user.data.glob("sessions/*/events.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("case", CASES.values(), ids=[name.replace(" ", "-") for name in CASES])
def test_every_ending_follows_schema_and_grammar(user: User, case: Case) -> None:
    ended = user.agent("run", "do it", "--model", user.script(*case.replies), *case.args, *STREAM)
    assert ended.exit_code == case.exit_code, ended
    check_stream(ended.events)
    assert ended.events[-1]["exit_code"] == case.exit_code
    assert set(case.expected_types) <= set(event_types(ended.events))


def test_the_session_log_is_the_same_stream_without_chunks(user: User) -> None:
    case = CASES["three steps of the lead"]
    events = user.agent("run", "do it", "--model", user.script(*case.replies), *STREAM).events
    assert stored_events(user) == [event for event in events if not event.get("delta")]
    check_stream(stored_events(user))


def test_a_run_without_a_model_has_a_complete_stream(user: User) -> None:
    ended = user.agent("run", "do it", *STREAM)
    assert ended.exit_code == 41
    check_stream(ended.events)


def test_a_run_with_the_wrong_cassette_has_a_complete_stream(user: User) -> None:
    ended = user.agent("run", "another task", "--replay", str(ROOT / "cli/demo/cassette.jsonl"), *STREAM)
    assert ended.exit_code == 1
    check_stream(ended.events)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_has_a_complete_stream(user: User, number: int) -> None:
    model = user.script(hand_out(step("a"), step("b", "a")), step_call("a", "run_command", command="sleep 60"))
    words = user.command("run", "x", "--model", model, *STREAM)
    events = run_and_signal(words, user, number, lambda line: '"tool.started"' in line and '"step_id": "a"' in line)
    check_stream(events)
    ended = [(event["step_id"], event["status"]) for event in events if event["type"] == "step.completed"]
    assert sorted(ended) == [("a", "cancelled"), ("lead", "cancelled")]


def test_a_run_interrupted_while_planning_has_a_complete_stream(user: User) -> None:
    model = user.script({**answer("late"), "delay_ms": 60_000})
    words = user.command("run", "x", "--model", model, *PLANNED, *STREAM)
    events = run_and_signal(words, user, signal.SIGINT, lambda line: '"role": "user"' in line)
    check_stream(events)
    assert [kind for kind in event_types(events) if kind != "message"] == ["init", "error", "result"]


def test_what_was_said_before_an_interruption_is_in_the_stream(user: User) -> None:
    model = user.script(lead_reply("It is four. " * 20, chunks=2, chunk_delay_ms=60_000))
    words = user.command("run", "x", "--model", model, *STREAM)
    events = run_and_signal(words, user, signal.SIGINT, lambda line: '"delta"' in line)
    check_stream(events)
    (said,) = [event["content"] for event in events if event.get("interrupted")]
    assert str(said).startswith("It is four.")


def run_and_signal(
    words: Sequence[str], user: User, number: int, is_time: Callable[[str], bool]
) -> list[dict[str, object]]:
    """Run until a certain line appears, then send the signal; return all events."""
    lines: list[str] = []
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=user.environment(), cwd=user.home, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            if is_time(line):
                break
        process.send_signal(number)
        rest, _ = process.communicate(timeout=120)
    return [json.loads(line) for line in (*lines, *rest.splitlines())]


@pytest.mark.parametrize(
    ("key", "decision", "exit_code"), [("y", "allow", 1), ("r", "allow", 1), ("not now", "deny", 57)]
)
def test_an_approval_on_a_terminal_is_a_pair_of_events(user: User, key: str, decision: str, exit_code: int) -> None:
    replies = (command("git push --dry-run"), lead_reply("pushed"))
    (user.home / "work").mkdir()
    words = user.command("run", "x", "--model", user.script(*replies), "-C", "work", *STREAM)
    line = f"{shlex.join(words)} > events.jsonl"
    terminal = pexpect.spawn("bash", ["-c", line], env=user.environment(), cwd=user.home, timeout=120, encoding="utf-8")  # type: ignore[arg-type]
    terminal.expect("no, or write why not: ")
    terminal.sendline(key)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == exit_code
    events = [json.loads(line) for line in (user.home / "events.jsonl").read_text().splitlines()]
    check_stream(events)
    (resolved,) = [event for event in events if event["type"] == "approval.resolved"]
    assert (resolved["decision"], resolved["by"]) == (decision, "person")
