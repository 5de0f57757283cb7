"""Tasks in containers while their manager is killed again and again; afterwards nothing may be left.

`python -m tests.agent.service.containers.leak_campaign --tasks 200 --kills 10` is the long form.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent.service.containers.open_pool import remove_stale_containers
from agent.service.workspaces.layout import WorkspaceStore, is_running
from tests.agent.service.containers.pool_cases import count_containers, open_pool, run_executor_engine, stub_options
from tests.docker_engine import docker
from tests.house.source_tree import ROOT

_AT_ONCE = 4


async def work(engine: Path, root: Path, done: Path) -> None:
    """Be a manager: run tasks until killed, and write down each that has ended."""
    async with open_pool(engine, root, stub_options(max_containers=6, warm=1)) as pool:

        async def run(line: int) -> None:
            for number in range(10_000):
                session = f"s{line}-{number % 3}"
                _, container_id = await pool.get_or_create_container(session, "anna")
                (pool.workspace(container_id).path / "output" / "result").write_text(session)
                await pool.release(container_id, has_failed=number % 7 == 0)
                with done.open("a") as file:
                    file.write("x\n")

        await asyncio.gather(*map(run, range(_AT_ONCE)))


def run_campaign(engine: Path, root: Path, *, tasks: int, kills: int, seed: int) -> list[str]:
    """Run tasks with as many managers as are killed, and one more; collect garbage once; return what is left."""
    chance, done = random.Random(seed), root.with_name("done")
    done.touch()
    temporary = root.with_name("tmp")
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    for number in range(kills + 1):
        argv = [sys.executable, "-m", "tests.agent.service.containers.leak_campaign", "--manager"]
        manager = subprocess.Popen([*argv, str(engine), str(root), str(done)], cwd=ROOT, env=env)
        goal = tasks * (number + 1) // (kills + 1)
        while len(done.read_text().splitlines()) < goal:
            assert manager.poll() is None, "the manager has ended by itself"
            time.sleep(0.02)
        # At any moment of a task, not only at its end.
        time.sleep(chance.random() * 0.5)
        manager.send_signal(signal.SIGKILL)
        manager.wait()
    store, environ = WorkspaceStore(root), {"DOCKER_HOST": f"unix://{engine}"}
    asyncio.run(remove_stale_containers(store, environ, is_dry_run=False))
    found = [*find_leaks(engine, store), *map(str, temporary.iterdir())]
    return [*found, *(f"port {port}" for port in sorted(listening_ports(engine)))]


def find_leaks(engine: Path, store: WorkspaceStore) -> list[str]:
    found = [f"{count} containers" for count in (count_containers(engine),) if count]
    found += [f"volume {name}" for name in docker(engine, "volume", "ls", "-q").split()]
    for folder in ("containers", "managers"):
        found += [str(path) for path in (store.pool / folder).iterdir()]
    found += [str(path) for path in store.leftovers()]
    for workspace in store.all():
        found += [f"lock of {workspace.path}"] if is_running(workspace) else []
        # A killed claim may have moved files; all of them are back.
        found += [] if (workspace.path / "input").is_dir() else [f"{workspace.path} has lost its folders"]
    return found


def listening_ports(engine: Path) -> set[int]:
    """Return the ports that the proxies of an engine listen on; other tests have engines of their own."""
    shown = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in shown.splitlines() if "docker-proxy" in line]
    return {int(line[3].rpartition(":")[2]) for line in lines if is_child_of(line[-1], engine)}


def is_child_of(owner: str, engine: Path) -> bool:
    """Whether a process, as `ss` names it, was started by the engine with this socket."""
    try:
        process = Path("/proc", re.findall(r"pid=(\d+)", owner)[0])
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return str(engine) in Path("/proc", parent, "cmdline").read_text()
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--manager", nargs=3, type=Path)
    given = parser.parse_args()
    if given.manager:
        asyncio.run(work(*given.manager))
        return 0
    with run_executor_engine() as engine, tempfile.TemporaryDirectory(prefix="wl-leak-") as folder:
        left = run_campaign(engine, Path(folder, "root"), tasks=given.tasks, kills=given.kills, seed=given.seed)
    print(f"seed {given.seed}: {given.tasks} tasks, {given.kills} kills, left behind: {', '.join(left) or 'nothing'}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
