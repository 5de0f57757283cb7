"""The pool on a real engine: who gets which container, how many there are, and what is left afterwards."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.service.containers.container import PoolError
from agent.service.containers.pool import ContainerPool
from agent.vocabulary.errors import InputError, SessionBusy
from tests.agent.service.containers.pool_cases import count_containers, open_pool, pool_engine, stub_options
from tests.docker_engine import docker
from tests.programs import needs
from tooling.contract.json_codec import encode

pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]
__all__ = ["pool_engine"]


def folders(root: Path) -> list[str]:
    return [path.name for path in (root / ".pool" / "containers").iterdir()]


async def test_every_task_gets_an_ephemeral_container_that_is_gone_afterwards(
    pool_engine: Path, tmp_path: Path
) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        seen = []
        for _ in range(2):
            url, container_id = await pool.get_or_create_container("session-1", "anna")
            assert url.startswith("http://127.0.0.1:")
            assert container_id.startswith("exec-")
            assert (pool.workspace(container_id).path / "input").is_dir()
            seen.append(container_id)
            await pool.release(container_id)
        assert len(set(seen)) == 2
        assert (await pool.stats()).containers == ()
        assert folders(tmp_path) == []


async def test_a_persistent_container_is_found_again_also_by_another_manager(pool_engine: Path, tmp_path: Path) -> None:
    options = stub_options()
    async with open_pool(pool_engine, tmp_path, options) as pool:
        first = await pool.get_or_create_container("session-1", "anna", "persistent")
        await pool.release(first[1])
        assert await pool.get_or_create_container("session-1", "anna", "persistent", first[1]) == first
        await pool.release(first[1])
        with pytest.raises(InputError, match="is not the container of this session"):
            await pool.get_or_create_container("session-1", "anna", "persistent", "exec-other")
        other = await pool.get_or_create_container("session-1", "boris", "persistent")
        assert other[1] != first[1]
        await pool.remove(other[1])
    async with open_pool(pool_engine, tmp_path, options) as pool:
        assert await pool.get_or_create_container("session-1", "anna", "persistent") == first
        assert len(pool.token(first[1])) == 64
        stats = await pool.stats()
        assert (stats.total_active, stats.persistent_containers, stats.ephemeral_containers) == (1, 1, 0)
        await pool.remove(first[1])
        assert (await pool.stats()).total_active == 0
    assert folders(tmp_path) == []


async def test_a_persistent_container_is_replaced_after_many_tasks_and_after_a_fault(
    pool_engine: Path, tmp_path: Path
) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(tasks_per_container=2)) as pool:
        seen = []
        for has_failed in (False, False, True, False):
            _, container_id = await pool.get_or_create_container("s1", "anna", "persistent")
            seen.append(container_id)
            await pool.release(container_id, has_failed=has_failed)
        assert seen[0] == seen[1]
        assert len(set(seen)) == 3
        await pool.remove(seen[-1])


async def test_a_persistent_container_that_was_killed_is_replaced(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        _, first = await pool.get_or_create_container("s1", "anna", "persistent")
        (row,) = (await pool.stats()).containers
        docker(pool_engine, "kill", row.name)
        assert "killed (137)" in await pool.ended(first)
        _, second = await pool.get_or_create_container("s1", "anna", "persistent")
        assert second != first
        await pool.remove(second)


async def test_requests_beyond_the_limit_wait_in_the_order_of_arrival(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(max_containers=2)) as pool:
        order: list[str] = []

        async def work(session: str) -> str:
            _, container_id = await pool.get_or_create_container(session, "anna")
            order.append(session)
            return container_id

        running = [await work("s0"), await work("s1")]
        waiting = []
        for number in range(2, 6):
            waiting.append(asyncio.create_task(work(f"s{number}")))
            await wait_until(lambda: pool.waiting == len(waiting))
        with pytest.raises(PoolError, match="all 2 containers of the pool are in use"):
            await pool.get_or_create_container("late", "anna", wait_s=1.5)
        assert order == ["s0", "s1"]
        stats = await pool.stats()
        assert (stats.total_active, stats.waiting) == (2, 4)
        for task in waiting:
            await pool.release(running.pop(0))
            running.append(await task)
            assert count_of(await pool.stats()) <= 2
        assert order == [f"s{number}" for number in range(6)]
        for container_id in running:
            await pool.release(container_id)


def count_of(stats: object) -> int:
    return int(str(json.loads(json.dumps(encode(stats)))["total_active"]))


async def test_a_request_that_gives_up_waiting_does_not_hold_up_the_others(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(max_containers=1)) as pool:
        _, first = await pool.get_or_create_container("s0", "anna")
        impatient = asyncio.create_task(pool.get_or_create_container("s1", "anna"))
        patient = asyncio.create_task(pool.get_or_create_container("s2", "anna"))
        await wait_until(lambda: pool.waiting == 2)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        await pool.release(first)
        await pool.release((await patient)[1])
        # And its session is free again.
        await pool.release((await pool.get_or_create_container("s1", "anna"))[1])


async def test_a_session_has_one_container_at_a_time(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        _, container_id = await pool.get_or_create_container("s1", "anna")
        with pytest.raises(SessionBusy):
            await pool.get_or_create_container("s1", "anna")
        await pool.release(container_id)


async def test_sessions_that_begin_alike_do_not_meet(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        both = [await pool.get_or_create_container(f"aaaaaaaa-{number}", "anna") for number in (1, 2)]
        rows = (await pool.stats()).containers
        assert len({row.name for row in rows}) == 2
        assert all(row.name.startswith("executor-aaaaaaaa-") for row in rows)
        for _, container_id in both:
            await pool.release(container_id)


@pytest.mark.parametrize(("session", "user", "mode"), [("../x", "anna", "ephemeral"), ("s1", "anna", "forever")])
async def test_wrong_requests_start_nothing(
    pool_engine: Path, tmp_path: Path, session: str, user: str, mode: str
) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options()) as pool:
        with pytest.raises(InputError):
            await pool.get_or_create_container(session, user, mode)  # type: ignore[arg-type]
        assert (await pool.stats()).containers == ()


async def wait_until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not is_true():  # noqa: ASYNC110 (what is waited for tells nobody)
            await asyncio.sleep(0.05)


async def wait_until_warm(pool: ContainerPool, count: int) -> tuple[str, ...]:
    """Return the names of the warm containers, once there are as many as wanted."""
    await wait_until(lambda: len(pool.warm) >= count)
    return pool.warm


async def test_a_warm_container_takes_over_the_files_of_a_session(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(warm=1)) as pool:
        (warm,) = await wait_until_warm(pool, 1)
        assert warm.startswith("executor-warm-")
        staged = tmp_path / "user_anna" / "session_s1" / "input"
        staged.mkdir(parents=True)
        (staged / "data.csv").write_text("1,2")
        _, container_id = await pool.get_or_create_container("s1", "anna")
        assert warm.endswith(container_id.removeprefix("exec-"))
        name = next(row.name for row in (await pool.stats()).containers if row.container_id == container_id)
        assert name == f"executor-s1-{container_id.removeprefix('exec-')}"
        assert docker(pool_engine, "exec", name, "cat", "/workspace/input/data.csv") == "1,2"
        docker(pool_engine, "exec", name, "touch", "/workspace/output/made", "/data/log")
        assert (tmp_path / "user_anna" / "session_s1" / "output" / "made").exists()
        # Meanwhile another one is made ready.
        (again,) = await wait_until_warm(pool, 1)
        assert again != warm
        await pool.release(container_id)
        assert (tmp_path / "user_anna" / "session_s1" / "input" / "data.csv").exists()
        assert (tmp_path / "user_anna" / ".sessions" / "session_s1" / "data" / "log").exists()
    assert docker(pool_engine, "ps", "-aq", "--filter", f"name={again}") == ""
    assert folders(tmp_path) == []


async def test_a_warm_container_that_fails_is_replaced(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(warm=1)) as pool:
        (first,) = await wait_until_warm(pool, 1)
        docker(pool_engine, "kill", first)
        await wait_until(lambda: pool.warm not in ((), (first,)))


async def test_warm_containers_make_room_for_a_session_that_keeps_its_own(pool_engine: Path, tmp_path: Path) -> None:
    async with open_pool(pool_engine, tmp_path, stub_options(warm=1, max_containers=1)) as pool:
        await wait_until_warm(pool, 1)
        _, container_id = await pool.get_or_create_container("s1", "anna", "persistent")
        stats = await pool.stats()
        assert (stats.total_active, stats.warm_containers) == (1, 0)
        await pool.remove(container_id)


async def test_two_managers_share_one_limit(pool_engine: Path, tmp_path: Path) -> None:
    options = stub_options(max_containers=1)
    async with open_pool(pool_engine, tmp_path, options) as one, open_pool(pool_engine, tmp_path, options) as other:
        _, first = await one.get_or_create_container("s1", "anna")
        with pytest.raises(PoolError, match="in use"):
            await other.get_or_create_container("s2", "anna", wait_s=0.5)
        with pytest.raises(SessionBusy):
            await other.get_or_create_container("s1", "anna")
        # What another one uses is not garbage.
        assert await other.gc() == []
        assert (await other.stats()).total_active == 1
        await one.release(first)
        await other.release((await other.get_or_create_container("s2", "anna"))[1])
    assert count_containers(pool_engine) == 0
