"""The limits of a command hold, and no process survives it."""

import asyncio
import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox import runner as runner_module
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import NO_CGROUPS
from agent.backends.sandbox.runner import DiskWatch, SandboxCommandRunner, disk_full_reason, no_files_reason
from agent.backends.sandbox.types import MIB, ResourceLimits
from tests.agent.backends.backend_cases import MARK, SANDBOXES, BuildRunner, find_processes, find_survivors
from tests.programs import needs
from tests.sandbox.escape_harness import EscapeHarness
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow

# Added to a time limit: far more than any of these commands needs to end.
HANG_S = 60
LIMITS = ResourceLimits(processes=100, memory_bytes=200 * MIB, file_bytes=20 * MIB, scratch_bytes=30 * MIB, cpu_s=1)
# Forks endlessly, in a shell whose name can be searched for.
BOMB = f"exec -a wl-bomb-{MARK} bash -c 'f() {{ f | f & }}; f; sleep 30'"
# Prints how many children it could fork.
FORKS = """/usr/bin/python3 -c '
import os, time
for count in range(3000):
    try:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
    except BlockingIOError:
        break
print(count, flush=True)
os._exit(0)
'"""


@pytest.fixture(params=SANDBOXES)
def runner(request: pytest.FixtureRequest, tmp_path: Path, build_runner: BuildRunner) -> SandboxCommandRunner:
    return build_runner(tmp_path, request.param, limits=LIMITS)


async def sh(runner: SandboxCommandRunner, command: str, *, timeout_s: float = 20) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    async with asyncio.timeout(timeout_s + HANG_S):
        return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=timeout_s))


async def test_a_fork_bomb_is_limited_and_killed(runner: SandboxCommandRunner) -> None:
    require_cgroups(runner)
    most = 0

    async def count() -> None:
        nonlocal most
        while True:
            most = max(most, len(find_processes(f"wl-bomb-{MARK}")))
            await asyncio.sleep(0.1)

    counting = asyncio.create_task(count())
    found = await sh(runner, BOMB, timeout_s=2)
    counting.cancel()
    assert found.timed_out
    assert 0 < most <= 100
    assert find_survivors(f"wl-bomb-{MARK}") == []


@pytest.mark.skipif(os.getuid() != 0, reason="is an ordinary user already")
@needs("bwrap")
def test_a_fork_bomb_of_an_ordinary_user_is_limited_without_control_groups() -> None:
    with EscapeHarness(owner=NOBODY) as harness:
        output = run_as_nobody(
            f"{FORKS} || true", workspace=harness.workspace, environ=harness.environ, copy=harness.root / "sources"
        )
    assert 100 < int(output) < 1024


async def test_the_memory_of_a_process_is_limited(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "/usr/bin/python3 -c 'x = bytearray(600_000_000); print(len(x))'")
    assert found.exit_code != 0
    assert b"600000000" not in found.output


async def test_the_memory_of_all_processes_together_is_limited(runner: SandboxCommandRunner) -> None:
    require_cgroups(runner)
    one = "/usr/bin/python3 -c 'import time; x = bytearray(120_000_000); time.sleep(1); print(len(x))'"
    found = await sh(runner, f"{one} & {one} & {one} & wait")
    assert found.output.count(b"120000000") < 3


async def test_the_size_of_a_file_is_limited(runner: SandboxCommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "head -c 100M /dev/zero > big; echo $?")
    assert found.output.strip().endswith(b"153")
    assert (tmp_path / "big").stat().st_size == 20 * MIB


@pytest.mark.parametrize("folder", ["/tmp", "~", "/dev/shm"])
@needs("bwrap")
async def test_folders_in_memory_are_limited(tmp_path: Path, build_runner: BuildRunner, folder: str) -> None:
    runner = build_runner(tmp_path, limits=LIMITS)
    fill = f"cd {folder} && for i in {{1..30}}; do head -c 15M /dev/zero > f$i || break; done; du -sm . | cut -f 1"
    found = await sh(runner, fill)
    assert int(found.output.split()[-1]) <= 260


async def test_a_command_that_fills_the_disk_is_stopped(tmp_path: Path, build_runner: BuildRunner) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    limit = free - 100 * MIB
    runner = build_runner(tmp_path, limits=ResourceLimits(free_disk_bytes=limit))
    found = await sh(runner, "for i in {1..8}; do head -c 100M /dev/zero > f$i; done; sleep 20")
    assert (found.exit_code, found.cancelled) == (1, False)
    assert found.output.endswith(disk_full_reason(limit).encode())


def test_a_command_is_not_stopped_if_the_disk_was_full_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "DISK_POLL_S", 0)
    assert not DiskWatch([tmp_path], 1 << 60).is_full()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for few files; only root can mount one."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,nr_inodes=30000", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a disk")
@needs("bwrap", "mount")
async def test_a_command_that_creates_too_many_files_is_stopped(small_disk: Path, build_runner: BuildRunner) -> None:
    limits = ResourceLimits(free_disk_bytes=0, free_disk_files=15_000)
    runner = build_runner(small_disk, "bubblewrap", limits=limits)
    found = await sh(runner, "touch {1..14000}; touch {14001..20000}; sleep 20")
    await runner.stop()
    runner.close()
    assert (found.exit_code, found.cancelled) == (1, False)
    assert found.output.endswith(no_files_reason(15_000).encode())


async def test_processor_time_is_limited(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "while :; do :; done", timeout_s=60)
    assert (found.exit_code, found.timed_out) == (137, False)


@pytest.mark.parametrize("command", ["cat", "read -r x; echo $x", "read -r x < /dev/tty; echo no", "cat /dev/tty"])
async def test_a_command_that_reads_input_does_not_wait_for_it(runner: SandboxCommandRunner, command: str) -> None:
    assert not (await sh(runner, command)).timed_out


async def test_an_endless_writer_ends_with_its_reader(runner: SandboxCommandRunner) -> None:
    # Far below the limit of one second of CPU time, which a gigabyte reaches on a slow machine.
    found = await sh(runner, "yes | head -c 128M", timeout_s=60)
    assert (found.exit_code, found.total_bytes) == (0, 128 * MIB)


async def test_two_gigabytes_of_output_use_little_memory(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path)
    await sh(runner, "true")
    gc.collect()
    before = resident_bytes()
    found = await sh(runner, "head -c 2G /dev/zero", timeout_s=120)
    assert (found.exit_code, found.total_bytes) == (0, 2 << 30)
    assert resident_bytes() - before < 80 * MIB


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_processes_get_sigterm_before_they_are_killed(
    sandbox: str, tmp_path: Path, build_runner: BuildRunner
) -> None:
    runner = build_runner(tmp_path, sandbox, limits=LIMITS, grace_s=2)
    tree = f"trap 'touch asked' TERM; (trap '' TERM; setsid sleep {MARK}) & while :; do sleep 0.1; done"
    found = await sh(runner, tree, timeout_s=2)
    assert found.timed_out
    assert (tmp_path / "asked").exists()
    assert find_survivors(MARK) == []


async def test_hundreds_of_commands_leave_no_open_file_and_no_control_group(runner: SandboxCommandRunner) -> None:
    await asyncio.gather(*(sh(runner, "true") for _ in range(8)))
    await runner.settle()
    before = open_files()
    for _ in range(25):
        await asyncio.gather(*(sh(runner, "true") for _ in range(8)))
    await runner.settle()
    assert open_files() == before
    during = list_cgroups()
    runner.close()
    assert len(list_cgroups()) < len(during) or not during


async def test_a_command_that_is_cancelled_while_it_starts_leaves_no_process(runner: SandboxCommandRunner) -> None:
    for wait_ms in range(12):
        call = asyncio.create_task(sh(runner, f"setsid sleep {MARK} & sleep {MARK}"))
        await asyncio.sleep(wait_ms / 1000)
        call.cancel()
        await asyncio.wait({call})
    await asyncio.sleep(0.05)
    assert find_survivors(MARK) == []


def require_cgroups(runner: SandboxCommandRunner) -> None:
    if NO_CGROUPS in runner.describe().not_covered:
        pytest.skip("needs control groups")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def list_cgroups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"*/windlass-{os.getpid()}-*"))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
