"""Real runs, ended in every way: each line fits the documented schema, each stream obeys the grammar."""

import json
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jsonschema
import pexpect
import pytest

from tests.cli.terminal_user import User, answer, calls, composes, one_step, plan, says, step, types_of
from tests.docs.event_schema import schema
from tests.docs.grammar import broken_rules
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
VALIDATOR = jsonschema.Draft202012Validator(schema(is_strict=True))
STREAM = ("--output-format", "stream-json")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A way for a run to go, and what its stream must show besides being right."""

    replies: tuple[dict[str, object], ...]
    exit_code: int
    shows: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def command(line: str) -> dict[str, object]:
    return calls("s1", "run_command", command=line)


USED = {"usage": {"input_tokens": 400, "output_tokens": 100}}
CASES = {
    "a direct answer": Case(replies=(answer("4"),), exit_code=0),
    "three steps": Case(
        replies=(
            plan(step("a", writes=["a.txt"]), step("b"), step("c", "a", "b")),
            calls("a", "write_file", path="a.txt", content="from a\n"),
            says("a", "a is written"),
            {"match": {"step": "b"}, "tool_calls": [{"name": "list_directory", "arguments": {"path": "."}}] * 2},
            says("b", "b is known"),
            calls("c", "run_command", command="cat a.txt"),
            says("c", "c has read a"),
            composes("All three are done."),
        ),
        exit_code=0,
        shows=("plan", "step.started", "tool.started", "files", "tool.completed", "step.completed"),
    ),
    "a plan that is only shown": Case(
        replies=(plan(step("a"), step("b", "a")),), exit_code=0, shows=("plan",), words=("--plan-only",)
    ),
    "a failed step and what needed it": Case(
        replies=(
            plan(step("a"), step("b", "a"), step("c")),
            {"match": {"step": "a"}, "fault": "refused"},
            says("c", "c is done"),
            composes("Only c is done."),
        ),
        exit_code=1,
        shows=("step.completed",),
    ),
    "a circle of steps": Case(replies=(plan(step("a", "b"), step("b", "a")),), exit_code=1, shows=("step.completed",)),
    "a denied command": Case(
        replies=one_step(command("git push"), says("s1", "could not push")),
        exit_code=57,
        shows=("approval.requested", "approval.resolved"),
    ),
    "a deferred command": Case(
        replies=one_step(command("git push"), says("s1", "later")),
        exit_code=57,
        shows=("approval.requested", "approval.resolved"),
        words=("--on-approval", "defer"),
    ),
    "a command that stops the run": Case(
        replies=one_step(command("git push")),
        exit_code=57,
        shows=("approval.requested", "approval.resolved"),
        words=("--on-approval", "fail"),
    ),
    "a blocked command": Case(
        replies=one_step(command("rm -rf /"), says("s1", "would not")), exit_code=57, words=("--approval-mode", "yolo")
    ),
    "arguments that are no arguments": Case(
        replies=one_step(
            {"match": {"step": "s1"}, "tool_calls": [{"name": "read_file", "arguments": "{path: oh"}]},
            calls("s1", "no_such_tool", x=1),
            says("s1", "gave up"),
        ),
        exit_code=0,
        shows=("tool.completed",),
    ),
    "a tool that keeps failing": Case(
        replies=(plan(step("s1")), {**calls("s1", "read_file", path="missing"), "repeat": True}), exit_code=54
    ),
    "a question nobody can answer": Case(
        replies=(plan(step("q", type="ask_user", ask_question="Which?"), step("b", "q")),),
        exit_code=1,
        shows=("question.asked", "question.answered"),
    ),
    "a spent budget": Case(
        replies=(plan(step("a"), step("b", "a")), {**says("a", "a is done"), **USED}, says("b", "never said")),
        exit_code=56,
        shows=("budget",),
        words=("--max-tokens", "900"),
    ),
    "the wall clock": Case(
        replies=one_step(command("sleep 60")), exit_code=124, shows=("tool.started",), words=("--timeout", "2")
    ),
    "a provider that keeps failing": Case(
        replies=({"fault": "reset", "repeat": True},), exit_code=75, shows=("error",)
    ),
    "an answer without a composer": Case(
        replies=(
            plan(step("a"), step("b")),
            says("a", "one"),
            says("b", "two"),
            {"match": {"purpose": "composer"}, "fault": "refused"},
        ),
        exit_code=0,
        shows=("warning",),
    ),
    "an input that is missing": Case(replies=(answer("x"),), exit_code=42, words=("-f", "missing.txt")),
    "a setting that is wrong": Case(replies=(answer("x"),), exit_code=52, words=("--set", "modle=x")),
}


def check(events: Sequence[dict[str, object]]) -> None:
    """Hold a stream against the schema and the grammar."""
    for event in events:
        VALIDATOR.validate(event)
    assert broken_rules(events) == [], "\n".join(map(str, events))


def kept(user: User) -> list[dict[str, object]]:
    """Return the log of the only session."""
    (log,) = user.data.glob("sessions/*/events.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("case", CASES.values(), ids=[name.replace(" ", "-") for name in CASES])
def test_every_ending_keeps_to_schema_and_grammar(user: User, case: Case) -> None:
    ended = user.agent("run", "do it", "--model", user.script(*case.replies), *case.words, *STREAM)
    assert ended.exit_code == case.exit_code, ended
    check(ended.events)
    assert ended.events[-1]["exit_code"] == case.exit_code
    assert set(case.shows) <= set(types_of(ended.events))


def test_the_log_of_a_session_is_the_same_stream_without_fragments(user: User) -> None:
    case = CASES["three steps"]
    events = user.agent("run", "do it", "--model", user.script(*case.replies), *STREAM).events
    assert kept(user) == [event for event in events if not event.get("delta")]
    check(kept(user))


def test_a_run_without_a_model_has_a_whole_stream(user: User) -> None:
    ended = user.agent("run", "do it", *STREAM)
    assert ended.exit_code == 41
    check(ended.events)


def test_a_cassette_that_does_not_fit_has_a_whole_stream(user: User) -> None:
    ended = user.agent("run", "another task", "--replay", str(ROOT / "cli/demo/cassette.jsonl"), *STREAM)
    assert ended.exit_code == 1
    check(ended.events)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_has_a_whole_stream(user: User, number: int) -> None:
    model = user.script(plan(step("a"), step("b", "a")), calls("a", "run_command", command="sleep 60"))
    words = user.command("run", "x", "--model", model, *STREAM)
    events = interrupted(words, user, number, lambda line: '"tool.started"' in line)
    check(events)
    assert [event["status"] for event in events if event["type"] == "step.completed"] == ["cancelled"]


def test_a_run_interrupted_while_planning_has_a_whole_stream(user: User) -> None:
    model = user.script({**answer("late"), "delay_ms": 60_000})
    words = user.command("run", "x", "--model", model, *STREAM)
    events = interrupted(words, user, signal.SIGINT, lambda line: '"message"' in line)
    check(events)
    assert types_of(events) == ["init", "message", "error", "result"]


def interrupted(
    words: Sequence[str], user: User, number: int, is_time: Callable[[str], bool]
) -> list[dict[str, object]]:
    """Run until a line says that it is time, then send the signal; return all events."""
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
    replies = one_step(command("git push --dry-run"), says("s1", "pushed"))
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
    check(events)
    (resolved,) = [event for event in events if event["type"] == "approval.resolved"]
    assert (resolved["decision"], resolved["by"]) == (decision, "person")
