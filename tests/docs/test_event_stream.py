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
    one_step,
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
    return step_call("s1", "run_command", command=line)


USED = {"usage": {"input_tokens": 400, "output_tokens": 100}}
CASES = {
    "a direct answer": Case(replies=(answer("4"),), exit_code=0),
    "three steps": Case(
        replies=(
            plan(step("a", writes=["a.txt"]), step("b"), step("c", "a", "b")),
            step_call("a", "write_file", path="a.txt", content="from a\n"),
            step_reply("a", "a is written"),
            {"match": {"step": "b"}, "tool_calls": [{"name": "list_directory", "arguments": {"path": "."}}] * 2},
            step_reply("b", "b is known"),
            step_call("c", "run_command", command="cat a.txt"),
            step_reply("c", "c has read a"),
            composer_reply("All three are done."),
        ),
        exit_code=0,
        expected_types=("plan", "step.started", "tool.started", "files", "tool.completed", "step.completed"),
    ),
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
    ),
    "a circle of steps": Case(
        replies=(plan(step("a", "b"), step("b", "a")),), exit_code=1, expected_types=("step.completed",)
    ),
    "a denied command": Case(
        replies=one_step(command("git push"), step_reply("s1", "could not push")),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
    ),
    "a deferred command": Case(
        replies=one_step(command("git push"), step_reply("s1", "later")),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
        args=("--on-approval", "defer"),
    ),
    "a command that stops the run": Case(
        replies=one_step(command("git push")),
        exit_code=57,
        expected_types=("approval.requested", "approval.resolved"),
        args=("--on-approval", "fail"),
    ),
    "a blocked command": Case(
        replies=one_step(command("rm -rf /"), step_reply("s1", "would not")),
        exit_code=57,
        args=("--approval-mode", "yolo"),
    ),
    "arguments that are no arguments": Case(
        replies=one_step(
            {"match": {"step": "s1"}, "tool_calls": [{"name": "read_file", "arguments": "{path: oh"}]},
            step_call("s1", "no_such_tool", x=1),
            step_reply("s1", "gave up"),
        ),
        exit_code=0,
        expected_types=("tool.completed",),
    ),
    "a tool that keeps failing": Case(
        replies=(plan(step("s1")), {**step_call("s1", "read_file", path="missing"), "repeat": True}), exit_code=54
    ),
    "a question nobody can answer": Case(
        replies=(plan(step("q", type="ask_user", ask_question="Which?"), step("b", "q")),),
        exit_code=1,
        expected_types=("question.asked", "question.answered"),
    ),
    "a spent budget": Case(
        replies=(
            plan(step("a"), step("b", "a")),
            {**step_reply("a", "a is done"), **USED},
            step_reply("b", "never said"),
        ),
        exit_code=56,
        expected_types=("budget",),
        args=("--max-tokens", "1400"),
    ),
    "the wall clock": Case(
        replies=one_step(command("sleep 60")), exit_code=124, expected_types=("tool.started",), args=("--timeout", "2")
    ),
    "a provider that keeps failing": Case(
        replies=({"fault": "reset", "repeat": True},), exit_code=75, expected_types=("error",)
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
    ),
    "an input that is missing": Case(replies=(answer("x"),), exit_code=42, args=("-f", "missing.txt")),
    "a setting that is wrong": Case(replies=(answer("x"),), exit_code=52, args=("--set", "modle=x")),
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
    case = CASES["three steps"]
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
    model = user.script(plan(step("a"), step("b", "a")), step_call("a", "run_command", command="sleep 60"))
    words = user.command("run", "x", "--model", model, *STREAM)
    events = run_and_signal(words, user, number, lambda line: '"tool.started"' in line)
    check_stream(events)
    assert [event["status"] for event in events if event["type"] == "step.completed"] == ["cancelled"]


def test_a_run_interrupted_while_planning_has_a_complete_stream(user: User) -> None:
    model = user.script({**answer("late"), "delay_ms": 60_000})
    words = user.command("run", "x", "--model", model, *STREAM)
    events = run_and_signal(words, user, signal.SIGINT, lambda line: '"role": "user"' in line)
    check_stream(events)
    assert event_types(events) == ["init", "message", "message", "error", "result"]


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
        rest, _ = process.communicate(timeout=30)
    return [json.loads(line) for line in (*lines, *rest.splitlines())]


@pytest.mark.parametrize(
    ("key", "decision", "exit_code"), [("y", "allow", 0), ("r", "allow", 0), ("not now", "deny", 57)]
)
def test_an_approval_on_a_terminal_is_a_pair_of_events(user: User, key: str, decision: str, exit_code: int) -> None:
    replies = one_step(command("git push --dry-run"), step_reply("s1", "pushed"))
    (user.home / "work").mkdir()
    words = user.command("run", "x", "--model", user.script(*replies), "-C", "work", *STREAM)
    line = f"{shlex.join(words)} > events.jsonl"
    terminal = pexpect.spawn("bash", ["-c", line], env=user.environment(), cwd=user.home, timeout=30, encoding="utf-8")  # type: ignore[arg-type]
    terminal.expect("no, or write why not: ")
    terminal.sendline(key)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == exit_code
    events = [json.loads(line) for line in (user.home / "events.jsonl").read_text().splitlines()]
    check_stream(events)
    (resolved,) = [event for event in events if event["type"] == "approval.resolved"]
    assert (resolved["decision"], resolved["by"]) == (decision, "person")
