"""Whatever a command does to the machine ends within its limits, and nobody is left."""

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import DiskWatch, SandboxCommandRunner, build_sandbox_runner
from agent.backends.sandbox.types import MIB, ResourceLimits
from tests.agent.backends.backend_cases import ENVIRON, MARK, find_processes, find_survivors
from tests.sandbox.escape_harness import EscapeHarness
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow

LIMITS = ResourceLimits(processes=100, memory_bytes=200 * MIB, file_bytes=20 * MIB, scratch_bytes=30 * MIB, cpu_s=1)
# Forks without end, in a shell whose name can be looked for.
BOMB = f"exec -a wl-bomb-{MARK} bash -c 'f() {{ f | f & }}; f; sleep 30'"
# Says how many children it could have.
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


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[SandboxCommandRunner]:
    runner = build_sandbox_runner(workspace=tmp_path, environ=ENVIRON, limits=LIMITS, grace_s=0.2)
    yield runner
    runner.close()


async def sh(runner: SandboxCommandRunner, command: str, *, timeout_s: float = 20) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=timeout_s))


async def test_a_fork_bomb_is_bounded_and_ends(runner: SandboxCommandRunner) -> None:
    started = time.monotonic()
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
    assert time.monotonic() - started < 8
    assert 0 < most <= 100
    assert find_survivors(f"wl-bomb-{MARK}") == []


@pytest.mark.skipif(os.getuid() != 0, reason="is an ordinary user already")
def test_a_fork_bomb_of_an_ordinary_user_is_bounded_without_control_groups() -> None:
    with EscapeHarness(owner=NOBODY) as arena:
        output = run_as_nobody(
            f"{FORKS} || true", workspace=arena.workspace, environ=arena.environ, copy=arena.root / "sources"
        )
    assert 100 < int(output) < 1024


async def test_memory_is_bounded(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "/usr/bin/python3 -c 'x = bytearray(600_000_000); print(len(x))'")
    assert found.exit_code != 0
    assert b"600000000" not in found.output


async def test_memory_of_a_whole_tree_is_bounded(runner: SandboxCommandRunner) -> None:
    if "there are no control groups" in " ".join(runner.describe().not_covered):
        pytest.skip("no control groups here")
    one = "/usr/bin/python3 -c 'import time; x = bytearray(120_000_000); time.sleep(1); print(len(x))'"
    found = await sh(runner, f"{one} & {one} & {one} & wait")
    assert found.output.count(b"120000000") < 3


async def test_a_large_file_is_cut_off(runner: SandboxCommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "head -c 100M /dev/zero > big; echo $?")
    assert found.output.strip().endswith(b"153")
    assert (tmp_path / "big").stat().st_size == 20 * MIB


@pytest.mark.parametrize("folder", ["/tmp", "~", "/dev/shm"])
async def test_the_folders_in_memory_are_bounded(runner: SandboxCommandRunner, folder: str) -> None:
    fill = f"cd {folder} && for i in {{1..30}}; do head -c 15M /dev/zero > f$i || break; done; du -sm . | cut -f 1"
    found = await sh(runner, fill)
    assert int(found.output.split()[-1]) <= 260


async def test_a_disk_that_runs_full_ends_the_command(runner: SandboxCommandRunner, tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    watched = build_sandbox_runner(
        workspace=tmp_path, environ=ENVIRON, limits=ResourceLimits(free_disk_bytes=free - 100 * MIB), grace_s=0.2
    )
    found = await sh(watched, "for i in {1..8}; do head -c 100M /dev/zero > f$i; done; sleep 20")
    assert (found.exit_code, found.cancelled) == (1, False)
    assert b"of the disk are free" in found.output


def test_a_disk_that_was_full_before_is_nobodys_fault(tmp_path: Path) -> None:
    watch = DiskWatch([tmp_path], 1 << 60)
    time.sleep(0.3)
    assert not watch.is_full()


async def test_processor_time_is_bounded(runner: SandboxCommandRunner) -> None:
    started = time.monotonic()
    found = await sh(runner, "while :; do :; done")
    assert found.exit_code == 137
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("command", ["cat", "read -r x; echo $x", "read -r x < /dev/tty; echo no", "cat /dev/tty"])
async def test_who_waits_for_a_person_waits_for_nobody(runner: SandboxCommandRunner, command: str) -> None:
    started = time.monotonic()
    await sh(runner, command)
    assert time.monotonic() - started < 3


async def test_an_endless_stream_cut_by_its_reader_ends_by_itself(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "yes | head -c 1G", timeout_s=60)
    assert (found.exit_code, found.total_bytes) == (0, 1 << 30)


async def test_two_gigabytes_take_little_memory(tmp_path: Path) -> None:
    runner = build_sandbox_runner(workspace=tmp_path, environ=ENVIRON)
    await sh(runner, "true")
    gc.collect()
    before = resident_bytes()
    found = await sh(runner, "head -c 2G /dev/zero", timeout_s=120)
    assert (found.exit_code, found.total_bytes) == (0, 2 << 30)
    assert resident_bytes() - before < 80 * MIB


async def test_a_deaf_tree_is_asked_and_then_ended(tmp_path: Path) -> None:
    runner = build_sandbox_runner(workspace=tmp_path, environ=ENVIRON, limits=LIMITS, grace_s=2)
    tree = f"trap 'touch asked' TERM; (trap '' TERM; setsid sleep {MARK}) & while :; do sleep 0.1; done"
    found = await sh(runner, tree, timeout_s=2)
    runner.close()
    assert found.timed_out
    assert (tmp_path / "asked").exists()
    assert find_survivors(MARK) == []


async def test_hundreds_of_boxes_leave_no_open_file_and_no_group(runner: SandboxCommandRunner) -> None:
    await asyncio.gather(*(sh(runner, "true") for _ in range(8)))
    before = open_files()
    for _ in range(25):
        await asyncio.gather(*(sh(runner, "true") for _ in range(8)))
    assert open_files() == before
    others = list_cgroups()
    runner.close()
    del runner
    gc.collect()
    assert len(list_cgroups()) < len(others) or not others


async def test_a_box_that_is_cancelled_while_it_starts_leaves_nobody(runner: SandboxCommandRunner) -> None:
    for wait_ms in range(12):
        call = asyncio.create_task(sh(runner, f"setsid sleep {MARK} & sleep {MARK}"))
        await asyncio.sleep(wait_ms / 1000)
        call.cancel()
        await asyncio.wait({call})
    await asyncio.sleep(0.05)
    assert find_survivors(MARK) == []


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def list_cgroups() -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"*/windlass-{os.getpid()}-*"))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
