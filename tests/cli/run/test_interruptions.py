"""Runs that are stopped from outside, at every moment and more than once."""

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.terminal_user import ProgramResult, User, answer, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
LIMIT_S = 20
STREAM = ("--output-format", "stream-json")
STUBBORN = "trap '' TERM; echo begun > begun; sleep 60; sleep 60"


def start_run(user: User, *words: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        user.command(*words), stdin=stdin, stdout=pipe, stderr=pipe, env=user.environment(), cwd=user.home
    )


def wait_result(process: "subprocess.Popen[bytes]") -> ProgramResult:
    try:
        stdout, stderr = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    return ProgramResult(exit_code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode())


def wait_until(claim: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not claim():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@pytest.mark.parametrize("backend", ["host", "sandbox"])
def test_many_interruptions_are_one_and_every_step_still_ends(user: User, backend: str) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), step_call("a", "run_command", command=STUBBORN))
    flags = ("--backend", backend, "--approval-mode", "yolo", "-C", str(folder))
    process = start_run(user, "run", "x", "--model", model, *STREAM, *flags)
    wait_until((folder / "begun").exists)
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ended = wait_result(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (130, [])


def test_the_first_reason_to_stop_is_the_one_that_counts(user: User) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), step_call("a", "run_command", command=STUBBORN))
    process = start_run(user, "run", "x", "--model", model, *STREAM, "--timeout", "1.5", "-C", str(folder))
    wait_until((folder / "begun").exists)
    process.send_signal(signal.SIGTERM)
    ended = wait_result(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (143, [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_stdin_is_waited_for_has_its_result(user: User, number: int, code: int) -> None:
    process = start_run(user, "run", "x", "--model", user.script(answer("hi")), *STREAM, stdin=subprocess.PIPE)
    assert process.stderr
    assert b"waiting for the end of stdin" in process.stderr.readline()
    process.send_signal(number)
    assert process.wait(LIMIT_S) == code
    ended = wait_result(process)
    assert (broken_rules(ended.events), ended.events[-1]["exit_code"]) == ([], code)


def test_the_time_limit_holds_while_stdin_is_waited_for(user: User) -> None:
    flags = ("--timeout", "0.2", *STREAM)
    process = start_run(user, "run", "x", "--model", user.script(answer("hi")), *flags, stdin=subprocess.PIPE)
    assert process.wait(LIMIT_S) == 124
    assert broken_rules(wait_result(process).events) == []


@pytest.mark.parametrize("is_over", [True, False])
def test_a_reader_that_does_not_read_holds_up_no_interruption(user: User, *, is_over: bool) -> None:
    rest = [] if is_over else [step_reply("b", "late", delay_ms=60_000)]
    steps = [step("a")] if is_over else [step("a"), step("b")]
    model = user.script(plan(*steps), step_reply("a", "long " * 50_000), *rest)
    process = start_run(user, "run", "x", "--model", model, *STREAM)
    log = user.data / "sessions"
    last = "result" if is_over else "step.completed"
    wait_until(lambda: any(f'"{last}"' in path.read_text() for path in log.glob("*/events.jsonl")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == (1 if is_over else 143)
    wait_result(process)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_one_command_with_all_it_started_and_leaves_nothing(user: User, number: int, code: int) -> None:
    scratch = user.home / "scratch"
    scratch.mkdir()
    user = replace(user, environ={"TMPDIR": str(scratch)})
    line = "echo $$ > begun; sleep 60"
    process = start_run(user, "exec", "--backend", "host", "--skip-check", "--", line)
    begun = user.home / "begun"
    wait_until(lambda: begun.exists() and begun.read_text().endswith("\n"))
    process.send_signal(number)
    assert (wait_result(process).exit_code, list(scratch.iterdir())) == (code, [])
    assert not Path(f"/proc/{begun.read_text().strip()}").exists()


def test_background_commands_are_ended_side_by_side(user: User) -> None:
    stubborn = "trap '' TERM; sleep 60; sleep 60"
    begun = [step_call("a", "run_command", command=stubborn, background=True) for _ in range(8)]
    ended = user.agent("run", "x", "--model", user.script(plan(step("a")), *begun, step_reply("a", "done")), *STREAM)
    finished, result = (event["ts"] for event in ended.events if event["type"] in ("step.completed", "result"))
    took = datetime.fromisoformat(str(result)) - datetime.fromisoformat(str(finished))
    assert (ended.exit_code, took.total_seconds() < 3) == (0, True)
