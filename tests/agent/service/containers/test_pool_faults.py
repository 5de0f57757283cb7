"""What goes wrong with containers is said clearly, and frees its place."""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from agent.service.containers.container import PoolError
from agent.service.containers.pool import ContainerPool
from agent.vocabulary.errors import AgentError
from tests.agent.service.containers.leak_campaign import run_campaign
from tests.agent.service.containers.pool_cases import (
    count_containers,
    open_pool,
    pool_engine,
    run_executor_engine,
    stub_options,
)
from tests.docker_engine import docker
from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]
__all__ = ["pool_engine"]
# Prints the id of its persistent container when it has all three kinds.
_MANAGER = """
import asyncio, sys
from pathlib import Path
from tests.agent.service.containers.pool_cases import open_pool, stub_options
async def main():
    async with open_pool(Path(sys.argv[1]), Path(sys.argv[2]), stub_options(warm=1)) as pool:
        await pool.get_or_create_container("s1", "anna")
        _, kept = await pool.get_or_create_container("s2", "anna", "persistent")
        while not pool.warm:
            await asyncio.sleep(0.05)
        print(kept, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def check_nothing_is_left(pool: ContainerPool, root: Path) -> None:
    """The session can be used again, and there is no container and no folder."""
    assert (await pool.stats()).containers == ()
    assert list((root / ".pool" / "containers").iterdir()) == []
    assert pool.waiting == 0


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("unready", "the container did not answer within 1.5 s"),
        ("exit", "the container ended with exit code 1: error: no model is set"),
    ],
)
async def test_a_container_that_never_gets_ready_fails_the_task_with_the_reason(
    pool_engine: Path, tmp_path: Path, mode: str, problem: str
) -> None:
    options = stub_options(mode, ready_timeout_s=1.5 if mode == "unready" else 120, max_containers=1)
    async with open_pool(pool_engine, tmp_path, options) as pool:
        for _ in range(2):
            with pytest.raises(PoolError, match=re.escape(problem)):
                await pool.get_or_create_container("s1", "anna")
        await check_nothing_is_left(pool, tmp_path)


async def test_a_missing_image_is_said(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(image="no-such-image:1")) as pool:
        with pytest.raises(PoolError, match="there is no image no-such-image:1") as caught:
            await pool.get_or_create_container("s1", "anna")
        assert "executor_image" in caught.value.hint
        await check_nothing_is_left(pool, tmp_path)


async def test_a_killed_container_is_noticed_and_frees_its_place(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(max_containers=1)) as pool:
        _, container_id = await pool.get_or_create_container("s1", "anna")
        (row,) = (await pool.stats()).containers
        docker(pool_engine, "kill", row.name)
        assert await pool.ended(container_id) == "the container was killed (137)"
        _, second = await pool.get_or_create_container("s1", "anna")
        await pool.release(container_id)
        await pool.release(second)
        await check_nothing_is_left(pool, tmp_path)


async def test_a_container_without_memory_left_says_so(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(memory_bytes=96 * 1024**2)) as pool:
        url, container_id = await pool.get_or_create_container("s1", "anna")
        async with httpx.AsyncClient(timeout=60) as client:
            with contextlib.suppress(httpx.HTTPError):
                await client.get(f"{url}/oom")
        assert await pool.ended(container_id) == "the container ran out of memory and was killed (137)"
        await pool.release(container_id)
        await check_nothing_is_left(pool, tmp_path)


@contextlib.contextmanager
def occupied(first: int, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for port in range(first, first + count):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        yield


async def test_ports_that_are_taken_fail_the_task_and_free_ones_do_not(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        url, container_id = await pool.get_or_create_container("s1", "anna")
        await pool.release(container_id)
        # The engine takes the next port of its range, tries ten, and the pool asks it three times.
        with occupied(int(url.rpartition(":")[2]) + 1, 200), pytest.raises(PoolError, match="no free port"):
            await pool.get_or_create_container("s1", "anna")
        await check_nothing_is_left(pool, tmp_path)
        _, container_id = await pool.get_or_create_container("s1", "anna")
        await pool.release(container_id)


async def test_an_engine_that_stops_is_said_and_nothing_waits_for_it(tmp_path: Path) -> None:
    with run_executor_engine() as engine:
        warnings: list[str] = []
        async with open_pool(engine, tmp_path, stub_options(), warnings) as pool:
            _, container_id = await pool.get_or_create_container("s1", "anna")
            stop_engine(engine)
            ended = await pool.ended(container_id)
            assert "the Docker engine was stopped" in ended or "the container" in ended
            await pool.release(container_id)
            with pytest.raises((PoolError, AgentError), match="the Docker engine does not answer"):
                await pool.get_or_create_container("s2", "anna")


def stop_engine(engine: Path) -> None:
    pid = int((engine.parent / "pid").read_text())
    os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(ProcessLookupError):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and f"{pid}" in os.listdir("/proc"):  # noqa: PTH208
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]:
                return
            time.sleep(0.1)


def kill_manager(engine: Path, root: Path) -> str:
    """Return the persistent container of a manager that was killed with three containers."""
    argv = [sys.executable, "-c", _MANAGER, str(engine), str(root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as manager:
        assert manager.stdout
        kept = manager.stdout.readline().strip()
        manager.kill()
    return kept


async def test_what_a_killed_manager_left_is_removed_except_persistent_containers(
    pool_engine: Path, tmp_path: Path
) -> None:
    kept = kill_manager(pool_engine, tmp_path)
    assert count_containers(pool_engine) == 3
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        rows = (await pool.stats()).containers
        assert [(row.container_id, row.mode) for row in rows] == [(kept, "persistent")]
        assert [path.name for path in (tmp_path / ".pool" / "containers").iterdir()] == [kept]
        # The sessions are free again.
        await pool.release((await pool.get_or_create_container("s1", "anna"))[1])
        assert (await pool.get_or_create_container("s2", "anna", "persistent"))[1] == kept
        await pool.remove(kept)
        await check_nothing_is_left(pool, tmp_path)
    assert list((tmp_path / ".pool" / "managers").iterdir()) == []


def test_nothing_is_left_after_managers_were_killed_at_random(pool_engine: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    left = run_campaign(pool_engine, tmp_path / "root", tasks=16, kills=2, seed=seed)
    assert left == [], f"seed {seed}"
