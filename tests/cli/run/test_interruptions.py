"""Runs that are stopped by signals and time limits, at every stage and repeatedly."""

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cli.run.task_input import WAITING_FOR_STDIN
from tests.cli.terminal_user import ProgramResult, User, answer, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
LIMIT_S = 120
STREAM = ("--output-format", "stream-json")
STUBBORN = "trap '' TERM; echo started > started; sleep 60; sleep 60"


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


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "the condition was never met"
        time.sleep(0.01)


@pytest.mark.parametrize("backend", ["host", "sandbox"])
def test_repeated_interrupts_count_once_and_every_step_still_ends(user: User, backend: str) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), step_call("a", "run_command", command=STUBBORN))
    flags = ("--backend", backend, "--approval-mode", "yolo", "-C", str(folder))
    process = start_run(user, "run", "x", "--model", model, *STREAM, *flags)
    wait_until((folder / "started").exists)
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ended = wait_result(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (130, [])


def test_the_first_reason_to_stop_wins(user: User) -> None:
    folder = user.home / "work"
    folder.mkdir()
    model = user.script(plan(step("a")), step_call("a", "run_command", command=STUBBORN))
    # On a busy machine the command may not have started within a short limit.
    for limit in ("1.5", "6", "24", "96"):
        process = start_run(user, "run", "x", "--model", model, *STREAM, "--timeout", limit, "-C", str(folder))
        wait_until(lambda process=process: (folder / "started").exists() or process.poll() is not None)
        if process.poll() is None:
            break
        wait_result(process)
    process.send_signal(signal.SIGTERM)
    ended = wait_result(process)
    assert (ended.exit_code, broken_rules(ended.events)) == (143, [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_waiting_for_stdin_still_yields_a_result(user: User, number: int, code: int) -> None:
    process = start_run(user, "run", "x", "--model", user.script(answer("hi")), *STREAM, stdin=subprocess.PIPE)
    assert process.stderr
    assert WAITING_FOR_STDIN in process.stderr.readline().decode()
    process.send_signal(number)
    assert process.wait(LIMIT_S) == code
    ended = wait_result(process)
    assert (broken_rules(ended.events), ended.events[-1]["exit_code"]) == ([], code)


def test_the_time_limit_applies_while_waiting_for_stdin(user: User) -> None:
    flags = ("--timeout", "0.2", *STREAM)
    process = start_run(user, "run", "x", "--model", user.script(answer("hi")), *flags, stdin=subprocess.PIPE)
    assert process.wait(LIMIT_S) == 124
    assert broken_rules(wait_result(process).events) == []


@pytest.mark.parametrize("is_over", [True, False])
def test_a_blocked_stdout_does_not_delay_an_interrupt(user: User, *, is_over: bool) -> None:
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
def test_a_signal_stops_exec_with_its_processes_and_leaves_no_files(user: User, number: int, code: int) -> None:
    scratch = user.home / "scratch"
    scratch.mkdir()
    user = replace(user, environ={"TMPDIR": str(scratch)})
    process = start_run(user, "exec", "--backend", "host", "--skip-check", "--", "echo $$ > pid; sleep 60")
    pid = user.home / "pid"
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    process.send_signal(number)
    assert (wait_result(process).exit_code, list(scratch.iterdir())) == (code, [])
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_background_commands_are_stopped_in_parallel(user: User) -> None:
    # Each command exits only when all of them have received SIGTERM. Stopped one after the other, all but the last
    # would be killed first.
    on_term = "touch term$$.{n}; until [ $(ls term* | wc -l) = {count} ]; do sleep 0.05; done; echo {n} >> exited; exit"
    count = 4
    commands = [
        f"trap '{on_term.format(n=n, count=count)}' TERM; touch ready.{n}; while :; do sleep 0.05; done"
        for n in range(count)
    ]
    started = [step_call("a", "run_command", command=command, background=True) for command in commands]
    all_ready = f"until [ $(ls ready* | wc -l) = {count} ]; do sleep 0.05; done"
    replies = (*started, step_call("a", "run_command", command=all_ready), step_reply("a", "done"))
    ended = user.agent("run", "x", "--model", user.script(plan(step("a")), *replies), "--session", "s", *STREAM)
    exited = (user.data / "sessions/s/workspace/exited").read_text().split()
    assert (ended.exit_code, len(exited) > 1) == (0, True)
