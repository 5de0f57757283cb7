"""Runs that are stopped from outside, at every moment and more than once."""

import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.cli.terminal_user import Ended, User, calls, plan, step
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
LIMIT_S = 20
STREAM = ("--output-format", "stream-json")
STUBBORN = "trap '' TERM; echo begun > begun; sleep 60; sleep 60"


def begin(user: User, *words: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        user.command(*words), stdin=stdin, stdout=pipe, stderr=pipe, env=user.environment(), cwd=user.home
    )


def end_of(process: "subprocess.Popen[bytes]") -> Ended:
    try:
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    return Ended(exit_code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode())


def wait_until(claim: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not claim():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@pytest.mark.parametrize("backend", ["host", "sandbox"])
def test_many_interruptions_are_one_and_every_step_still_ends(user: User, backend: str) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), calls("a", "run_command", command=STUBBORN))
    flags = ("--backend", backend, "--approval-mode", "yolo", "-C", str(folder))
    process = begin(user, "run", "x", "--model", model, *STREAM, *flags)
    wait_until((folder / "begun").exists)
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ended = end_of(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (130, [])


def test_the_first_reason_to_stop_is_the_one_that_counts(user: User) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), calls("a", "run_command", command=STUBBORN))
    process = begin(user, "run", "x", "--model", model, *STREAM, "--timeout", "1.5", "-C", str(folder))
    wait_until((folder / "begun").exists)
    process.send_signal(signal.SIGTERM)
    ended = end_of(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (143, [])
