"""Two runs in the same session: one waits for the other and says so."""

import itertools
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.sessions.lock import waiting_message
from agent.sessions.store import busy_message
from cli.run.run_task import TIME_LIMIT
from tests.cli.run.test_interruptions import start_run, wait_result, wait_until
from tests.cli.terminal_user import ProgramResult, User, answer
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"
SAME_SESSION = ("--model", HELLO, "--session", "s")
NO_WAIT = ("--set", "session_wait_s=0")


@contextmanager
def busy_session(user: User) -> Iterator["subprocess.Popen[bytes]"]:
    """Keep session `s` busy with a run that waits for its model."""
    model = user.script(answer("late") | {"delay_ms": 60_000}, name="late.jsonl")
    process = start_run(user, "run", "a long request", "--model", model, "--session", "s")
    log = user.data / "sessions/s/events.jsonl"
    wait_until(lambda: log.exists() and b"a long request" in log.read_bytes())
    try:
        yield process
    finally:
        process.terminate()
        wait_result(process)


def read_wait_message(process: "subprocess.Popen[bytes]") -> str:
    """Return the line in which a second run says what it waits for."""
    assert process.stderr
    return process.stderr.readline().decode()


def test_a_busy_session_is_refused_and_its_holder_is_named(user: User) -> None:
    with busy_session(user) as holder:
        ended = user.agent("run", "x", *SAME_SESSION, *NO_WAIT)
        document = user.agent("run", "x", *SAME_SESSION, *NO_WAIT, "--output-format", "json").document
    assert (ended.exit_code, ended.stdout) == (75, "")
    assert busy_message("s", str(holder.pid), "a long request") in ended.stderr
    assert (document["exit_code"], document["subtype"], document["is_error"]) == (75, "error_busy", True)


def test_a_second_run_names_the_holder_waits_and_then_runs(user: User) -> None:
    with busy_session(user) as holder:
        second = start_run(user, "run", "x", *SAME_SESSION)
        message = read_wait_message(second)
    ended = wait_result(second)
    assert waiting_message(busy_message("s", str(holder.pid), "a long request")) in message
    assert (ended.exit_code, ended.stdout) == (0, "Hello from Windlass.\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_wait_for_a_session(user: User, number: int, code: int) -> None:
    with busy_session(user):
        second = start_run(user, "run", "x", *SAME_SESSION)
        read_wait_message(second)
        second.send_signal(number)
        assert wait_result(second).exit_code == code


def test_the_time_limit_stops_the_wait_for_a_session(user: User) -> None:
    with busy_session(user):
        ended = user.agent("run", "x", *SAME_SESSION, "--timeout", "0.3")
    assert (ended.exit_code, TIME_LIMIT in ended.stderr) == (124, True)


def test_runs_of_one_session_never_interleave(user: User) -> None:
    runs = [start_run(user, "run", "x", *SAME_SESSION) for _ in range(4)]
    ends: list[ProgramResult] = [wait_result(run) for run in runs]
    assert [end.exit_code for end in ends] == [0] * 4
    lines = (user.data / "sessions/s/events.jsonl").read_text().splitlines()
    order = [run_id for run_id, _ in itertools.groupby(json.loads(line)["run_id"] for line in lines)]
    assert len(order) == len(set(order)) == 4
    numbers = [json.loads(line)["seq"] for line in lines]
    assert numbers == sorted(set(numbers))
    assert json.loads((user.data / "sessions/s/SESSION.json").read_text())["run_count"] == 4
