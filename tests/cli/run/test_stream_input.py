"""A program drives a session: commands on stdin, events on stdout."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.run.flag_checks import STREAM_OUTPUT
from cli.run.input_lines import MAX_LINE_BYTES, split_lines
from cli.run.stream_session import AFTER_END, NOTHING_RUNS
from tests.cli.terminal_user import ProgramResult, User, event_types, lead_call, lead_reply
from tests.docs.grammar import broken_rules

ROOT = Path(__file__).parents[3]
LIMIT_S = 60
STREAMS = ("run", "--input-format", "stream-json", "--output-format", "stream-json", "--planning", "never")
PUSH = "git push --dry-run || true"
slow = pytest.mark.slow


def on(text: str, reply: dict[str, object]) -> dict[str, object]:
    """Script a reply to a last message with this text."""
    return {**reply, "match": {"purpose": "lead", "contains": text}}


class Driver:
    """The program that drives a session."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.events: list[dict[str, object]] = []

    def send(self, line: str = "", **command: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line or json.dumps(command)}\n")
        self.process.stdin.flush()

    def wait_for(self, kind: str) -> dict[str, object]:
        """Read events up to the next one of this type."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] == kind:
                return self.events[-1]
        raise AssertionError(f"the stream ended without {kind}: {self.events[-3:]}")

    def close(self) -> int:
        """Close stdin, read the rest and return the exit code."""
        out, _ = self.process.communicate(timeout=LIMIT_S)
        self.events += map(json.loads, out.splitlines())
        return self.process.returncode

    def runs(self) -> list[list[dict[str, object]]]:
        """Return the events of each run."""
        in_runs = [event for event in self.events if event["run_id"]]
        return [list(events) for _, events in itertools.groupby(in_runs, lambda event: event["run_id"])]


@contextmanager
def drive(user: User, *words: str) -> Iterator[Driver]:
    process = subprocess.Popen(
        user.command(*STREAMS, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=user.environment(),
        cwd=user.home,
        text=True,
    )
    try:
        yield Driver(process)
    finally:
        process.kill()
        process.communicate()


def pipe(user: User, *lines: object, model: str) -> ProgramResult:
    """Send all lines at once, and the end of the input."""
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return user.agent(*STREAMS, "--model", model, stdin=text)


@slow
def test_two_requests_are_two_runs_of_one_conversation(user: User) -> None:
    model = user.script(on("first", lead_reply("one")), on("second", lead_reply("two")))
    with drive(user, "--model", model) as driver:
        driver.send(type="request", text="first")
        assert driver.wait_for("result")["result"] == "one"
        driver.send(type="user", message={"role": "user", "content": [{"type": "text", "text": "second"}]})
        assert driver.wait_for("result")["result"] == "two"
        assert driver.close() == 0
    runs = driver.runs()
    assert [broken_rules(events) for events in runs] == [[], []]
    assert len({event["session_id"] for event in driver.events}) == 1
    shown = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert [session["runs"] for session in shown] == [2]


@slow
def test_approvals_and_questions_wait_for_the_program(user: User) -> None:
    model = user.script(
        on("do it", lead_call("run_command", command=PUSH)),
        on("fatal", lead_call("ask_user", question="Which color?", options=["red", "blue"])),
        on("blue", lead_reply("done")),
    )
    with drive(user, "--model", model) as driver:
        driver.send(type="request", text="do it")
        asked = driver.wait_for("approval.requested")
        assert (asked["command"], "decided" in asked) == (PUSH, False)
        driver.send(type="approve", approval_id="a-other", decision="allow")
        assert "nothing waits for a-other" in str(driver.wait_for("error")["message"])
        driver.send(type="approve", approval_id=asked["approval_id"], decision="allow")
        assert driver.wait_for("approval.resolved")["by"] == "person"
        question = driver.wait_for("question.asked")
        driver.send(type="answer", question_id=question["question_id"], answer="blue")
        assert driver.wait_for("result")["result"] == "done"
        assert driver.close() == 0


@slow
def test_an_edited_command_runs_instead(user: User) -> None:
    model = user.script(on("do it", lead_call("run_command", command=PUSH)), on("changed", lead_reply("done")))
    with drive(user, "--model", model) as driver:
        driver.send(type="request", text="do it")
        asked = driver.wait_for("approval.requested")
        driver.send(type="approve", approval_id=asked["approval_id"], decision="edit", command="echo edited")
        assert "edited" in str(driver.wait_for("tool.completed")["output"])
        assert driver.close() == 0


@slow
def test_an_interrupt_ends_one_request_and_the_next_one_runs(user: User) -> None:
    model = user.script(on("first", lead_reply("late", delay_ms=600_000)), on("second", lead_reply("two")))
    with drive(user, "--model", model) as driver:
        driver.send(type="interrupt")
        assert NOTHING_RUNS in str(driver.wait_for("error")["message"])
        driver.send(type="request", text="first")
        driver.send(type="request", text="second")
        driver.wait_for("step.started")
        driver.send(type="interrupt")
        assert driver.wait_for("result")["exit_code"] == 130
        assert driver.wait_for("result")["result"] == "two"
        assert driver.close() == 0


@slow
def test_a_message_reaches_the_running_request(user: User) -> None:
    model = user.script(
        on("do it", lead_call("ask_user", question="Ready?", options=["yes"])), on("use tabs", lead_reply("tabs"))
    )
    with drive(user, "--model", model) as driver:
        driver.send(type="steer", text="too early")
        assert NOTHING_RUNS in str(driver.wait_for("error")["message"])
        driver.send(type="request", text="do it")
        question = driver.wait_for("question.asked")
        driver.send(type="steer", text="use tabs")
        driver.send(type="answer", question_id=question["question_id"], answer="yes")
        assert driver.wait_for("result")["result"] == "tabs"
        assert driver.close() == 0


@slow
def test_bad_lines_are_reported_and_the_session_goes_on(user: User) -> None:
    model = user.script(on("go", lead_reply("fine")))
    long = json.dumps({"type": "request", "text": "x" * MAX_LINE_BYTES})
    ended = pipe(user, "hello", long, "", {"type": "request"}, {"type": "request", "text": "go"}, model=model)
    errors = [event for event in ended.events if event["type"] == "error"]
    assert [(event["run_id"], event["seq"], event["exit_code"]) for event in errors] == [
        ("", 1, 0),
        ("", 2, 0),
        ("", 3, 0),
    ]
    assert [str(event["message"]).split(": ")[0] for event in errors] == [
        "line 1 of stdin", "line 2 of stdin", "line 4 of stdin",
    ]  # fmt: skip
    assert (ended.exit_code, ended.events[-1]["result"]) == (0, "fine")


@slow
def test_the_exit_code_is_that_of_the_last_result(user: User) -> None:
    model = user.script(on("good", lead_reply("fine")), on("bad", {"fault": "auth"}))
    good, bad = {"type": "request", "text": "good"}, {"type": "request", "text": "bad"}
    assert pipe(user, good, bad, model=model).exit_code == 41
    assert pipe(user, bad, good, model=model).exit_code == 0
    assert pipe(user, model=model).exit_code == 0
    assert pipe(user, "nonsense", model=model).exit_code == 42


@slow
def test_after_the_end_of_the_input_nobody_is_waited_for(user: User) -> None:
    model = user.script(
        on("do it", lead_call("run_command", command=PUSH)),
        on("choose one", lead_call("ask_user", question="Which?", options=["a"])),
        on(".", {"text": "done", "repeat": True}),
    )
    ended = pipe(user, {"type": "request", "text": "do it"}, {"type": "request", "text": "choose one"}, model=model)
    assert [event["decision"] for event in ended.events if event["type"] == "approval.resolved"] == ["deny"]
    assert [event["answer"] for event in ended.events if event["type"] == "question.answered"] == [None]
    assert event_types(ended.events).count("result") == 2


@slow
def test_end_finishes_what_was_sent_and_takes_no_more_requests(user: User) -> None:
    model = user.script(on("do it", lead_call("run_command", command=PUSH)), on("fatal", lead_reply("done")))
    with drive(user, "--model", model) as driver:
        driver.send(type="request", text="do it")
        driver.send(type="end")
        asked = driver.wait_for("approval.requested")
        driver.send(type="request", text="one more")
        assert AFTER_END in str(driver.wait_for("error")["message"])
        driver.send(type="approve", approval_id=asked["approval_id"], decision="allow")
        driver.wait_for("result")
        assert driver.process.wait(LIMIT_S) == 0


@slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("is_idle", [True, False])
def test_a_signal_ends_the_session(user: User, number: signal.Signals, code: int, is_idle: bool) -> None:
    model = user.script(on("go", lead_reply("late", delay_ms=0 if is_idle else 600_000)))
    with drive(user, "--model", model) as driver:
        driver.send(type="request", text="go")
        driver.wait_for("result" if is_idle else "step.started")
        driver.process.send_signal(number)
        assert driver.process.wait(LIMIT_S) == code


@slow
def test_a_session_can_be_continued_and_files_attached(user: User) -> None:
    (user.home / "notes.txt").write_text("the code is 4711")
    model = user.script(on("4711", lead_reply("seen")), on("again", lead_reply("more")))
    request = {"type": "request", "text": "read", "attachments": [str(user.home / "notes.txt")]}
    first = pipe(user, request, model=model)
    assert first.events[-1]["result"] == "seen"
    session = str(first.events[0]["session_id"])
    again = user.agent(
        *STREAMS, "-r", session, "--model", model, stdin=json.dumps({"type": "request", "text": "again"})
    )
    assert (again.events[-1]["result"], again.events[0]["session_id"]) == ("more", session)
    missing = pipe(user, {"type": "request", "text": "x", "attachments": ["/nowhere"]}, model=model)
    assert (missing.exit_code, missing.events[-1]["exit_code"]) == (42, 42)
    assert broken_rules(missing.events) == []


@slow
@pytest.mark.parametrize("more", [("a task",), ("--plan-only",), ("-f", "x"), ("--ephemeral",), ("--record", "x")])
def test_flags_of_a_single_task_are_refused(user: User, more: tuple[str, ...]) -> None:
    ended = user.agent(*STREAMS, *more, stdin="")
    assert ended.exit_code == 2 and "cannot be used with --input-format stream-json" in ended.stderr


@slow
def test_it_needs_the_event_stream_as_output(user: User) -> None:
    ended = user.agent("run", "--input-format", "stream-json", stdin="")
    assert ended.exit_code == 2 and STREAM_OUTPUT in ended.stderr


@slow
def test_the_example_drives_a_session(user: User) -> None:
    folder = user.home / "app"
    folder.mkdir()
    (folder / "config.ini").write_text("port = 8080\n")
    ended = subprocess.run(
        [sys.executable, "examples/drive_session.py", "-C", str(folder), "--model", "script:examples/follow-up.jsonl"],
        cwd=ROOT,
        env={
            **user.environment(),
            "AGENT_PLANNING": "auto",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.stdout == "success: The port is 8080.\nsuccess: The port is now 9090.\n", ended.stderr
    assert (ended.returncode, (folder / "config.ini").read_text()) == (0, "port = 9090\n")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lines_are_split_wherever_chunks_end_and_long_ones_are_dropped(size: int) -> None:
    text = b"one\n\ntoo long a line\ntwo\nlast"
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(split_lines(chunks, limit=8)) == [b"one", b"", None, b"two", b"last"]
    assert list(split_lines([b"endless" * 100, b"x" * 100], limit=8)) == [None]
    assert list(split_lines([], limit=8)) == []
