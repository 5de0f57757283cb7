"""Attacks that a shared sandbox makes possible: on its first process, on its workers, and on other commands."""

import asyncio
import platform
from pathlib import Path

import pytest

from agent.backends.sandbox.seccomp import ARCHITECTURES
from tests.agent.backends.backend_cases import MARK, BuildRunner, find_survivors, wait_for_file
from tests.programs import needs
from tests.sandbox.escape_harness import EscapeHarness
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner

pytestmark = [pytest.mark.slow, needs("bwrap")]

# For the first process and the worker of the command itself; every line that prints is an attack that succeeded.
_PRLIMIT = ARCHITECTURES[platform.machine()].prlimit
ATTACKS = r"""
say() { echo "reached $*"; }
parent=$(cut -d ' ' -f 4 /proc/$$/stat)
for pid in 1 $parent; do
  for fd in /proc/$pid/fd/* /proc/$pid/fd/{0..9}; do
    readlink "$fd" >/dev/null 2>&1 && say link $fd
    { : < "$fd"; } 2>/dev/null && say read $fd
    { : > "$fd"; } 2>/dev/null && say write $fd
  done
  for file in environ mem maps syscall stack auxv io; do
    { head -c 1 < /proc/$pid/$file | grep -q .; } 2>/dev/null && say $file of $pid
  done
  { : > /proc/$pid/mem; } 2>/dev/null && say writable memory of $pid
  ls /proc/$pid/root/ /proc/$pid/cwd/ >/dev/null 2>&1 && say folders of $pid
  { echo 1 > /proc/$pid/oom_score_adj; } 2>/dev/null && say oom score of $pid
  /usr/bin/python3 - $pid <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
if libc.ptrace(0x4206, pid, 0, 0) == 0: print("reached trace of", pid)
zero = (ctypes.c_ulong * 2)(0, 0)
for kind in range(16):
    if libc.syscall(PRLIMIT, pid, kind, zero, None) == 0: print("reached limit", kind, "of", pid)
try:
    own = os.pidfd_open(pid)
except OSError:
    sys.exit()
for fd in range(16):
    if libc.syscall(438, own, fd, 0) >= 0: print("reached descriptor", fd, "of", pid)
END
done
for number in {1..31}; do kill -$number 1 2>/dev/null; done
kill -9 1; kill -STOP 1
for fd in /proc/self/fd/*; do
  case $(readlink "$fd") in socket:*) say socket $fd;; esac
done
echo "all tried"
""".replace("PRLIMIT", str(_PRLIMIT))


async def sh(
    runner: CommandRunner, command: str, cwd: Path, *, timeout_s: float = 30, may_leave: bool = False
) -> CommandOutput:
    request = CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=timeout_s, may_leave_processes=may_leave)
    async with asyncio.timeout(120):
        return await runner.run(request)


async def test_the_first_process_and_the_worker_are_out_of_reach(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    found = await sh(runner, ATTACKS, tmp_path)
    assert found.output.decode() == "all tried\n"
    # It still works: nothing was stopped or killed.
    assert (await sh(runner, "echo on", tmp_path)).output == b"on\n"


def test_the_first_process_of_an_ordinary_user_is_out_of_reach() -> None:
    with EscapeHarness(owner=NOBODY) as harness:
        output = run_as_nobody(
            ATTACKS, workspace=harness.workspace, environ=harness.environ, copy=harness.root / "sources"
        )
    assert output.decode() == "all tried\n"


@pytest.mark.parametrize("how", ["kill -9 $PPID", "kill -9 -1", "kill -STOP $PPID; kill -9 $PPID"])
async def test_a_command_that_kills_its_worker_is_reported_as_killed(
    tmp_path: Path, build_runner: BuildRunner, how: str
) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    mark = f"{MARK}1"
    found = await sh(runner, f"env -i setsid sleep {mark} & {how}; sleep 0.2; exit 0", tmp_path, may_leave=True)
    assert found.exit_code == 137
    assert find_survivors(mark) == []
    assert (await sh(runner, "echo on", tmp_path)).output == b"on\n"


async def test_a_command_that_stops_its_worker_ends_at_its_time_limit(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    mark = f"{MARK}2"
    found = await sh(runner, f"setsid sleep {mark} & kill -STOP $PPID; exit 0", tmp_path, timeout_s=1)
    assert (found.timed_out, found.exit_code) == (True, 124)
    assert find_survivors(mark) == []
    assert (await sh(runner, "echo on", tmp_path)).output == b"on\n"


async def test_a_command_cannot_forge_the_exit_code_of_another(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    victim = asyncio.create_task(sh(runner, "touch started; until [ -e go ]; do sleep 0.01; done; exit 7", tmp_path))
    await wait_for_file(tmp_path / "started")
    forge = r"""
    for pid in /proc/[0-9]*; do
      for fd in $pid/fd/*; do { printf 'exited 0 1' > $fd; } 2>/dev/null; done
    done
    touch go
    """
    await sh(runner, forge, tmp_path)
    assert (await victim).exit_code == 7


async def test_limits_of_a_command_hold_for_what_it_left_behind(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    left = await sh(
        runner, "(sleep 1; ulimit -c; ulimit -n; ulimit -n 99999 || echo no) > later & true", tmp_path, may_leave=True
    )
    assert len(left.left_running) >= 1
    found = await sh(runner, "until grep -q no later; do sleep 0.05; done; cat later", tmp_path)
    assert found.output.startswith(b"0\n8192\n")


async def test_the_sandbox_ends_with_its_control_socket(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path, "bubblewrap")
    mark = f"{MARK}3"
    await sh(runner, f"setsid sleep {mark} &", tmp_path, may_leave=True)
    runner.close()
    assert find_survivors(mark) == []
