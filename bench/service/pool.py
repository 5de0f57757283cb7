"""Measure the pool of containers: the first command of a task with a warm one, and the start of ten."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from agent.backends.docker.engine import Engine
from agent.service.containers.pool import ContainerPool
from agent.service.workspaces.layout import WorkspaceStore
from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from tests.agent.hooks.callback_server import Receiver, receiver
from tests.agent.service.containers.pool_cases import pool_options, run_executor_engine, stub_options
from tests.house.source_tree import ROOT

ROUNDS = 5
CONTAINERS = 10
START_ROUNDS = 2
_SCRIPT = (
    {"match": {"purpose": "lead"}, "tool_calls": [{"name": "run_command", "arguments": {"command": "true"}}]},
    {"match": {"purpose": "lead"}, "text": "Done."},
)


def pool() -> list[BenchResult]:
    """Measure against a worker without containers, which starts the program, whose commands run in the sandbox.

    Needs root and dockerd.
    """
    if os.getuid() or shutil.which("dockerd") is None:
        print("left out: needs root and dockerd", file=sys.stderr)
        return []
    with run_executor_engine() as engine, tempfile.TemporaryDirectory() as name, receiver() as told:
        folder = Path(name)
        scripts = folder / "scripts"
        scripts.mkdir()
        (scripts / "reply.jsonl").write_text("\n".join(map(json.dumps, _SCRIPT)))
        with asyncio.Runner() as loop:
            options = pool_options(scripts, warm=1, callback_url=told.url)
            with _open(loop, engine, folder / "warm", options) as opened:
                tasks = iter(range(1000))
                warm, program = sample_interleaved(
                    ROUNDS,
                    lambda: loop.run(_in_container(opened, told, f"s{next(tasks)}")),
                    lambda: _in_process(scripts / "reply.jsonl", folder / "data"),
                )
            with _open(loop, engine, folder / "cold", stub_options(max_containers=CONTAINERS)) as opened:
                starts = [loop.run(_start_all(opened)) for _ in range(START_ROUNDS)]
    return [
        ratio("first command in a warm container, against the sandbox", 1.5, warm, program),
        milliseconds(f"start of {CONTAINERS} containers of the pool", 30_000, starts),
    ]


@contextmanager
def _open(loop: asyncio.Runner, engine: Path, root: Path, options: object) -> Iterator[ContainerPool]:
    client = Engine(engine)
    opened = loop.run(ContainerPool.open(client, WorkspaceStore(root), options, print))  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        loop.run(opened.close())
        loop.run(client.close())


async def _in_container(opened: ContainerPool, told: Receiver, session: str) -> float:
    await _until(lambda: bool(opened.warm))
    before, started = len(told.taken), time.perf_counter()
    url, container_id = await opened.get_or_create_container(session, "bench")
    body = {"session_id": session, "prompt": "run true", "callback_url": told.url}
    async with httpx.AsyncClient(trust_env=False) as client:
        headers = {"Authorization": f"Bearer {opened.token(container_id)}"}
        (await client.post(f"{url}/v1/tasks/execute", json=body, headers=headers)).raise_for_status()
    await _until(lambda: "tool_call" in told.events[before:])
    taken = time.perf_counter() - started
    await _until(lambda: "task_completed" in told.events[before:])
    await opened.release(container_id)
    return taken


async def _until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 (there is no event to wait for)
        await asyncio.sleep(0.002)


def _in_process(script: Path, data: Path) -> float:
    data.mkdir(mode=0o700, exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "AGENT_MEMORY": "false"}
    # Files of others in /tmp must not count.
    environ |= dict.fromkeys(("HOME", "AGENT_SANDBOX", "TMPDIR"), str(data))
    argv = [
        sys.executable,
        "-c",
        "from cli.main import main; main()",
        "run",
        "--scratch",
        "--model",
        f"script:{script}",
    ]
    started = time.perf_counter()
    with subprocess.Popen(
        [*argv, "--output-format", "stream-json", "run true"], stdout=subprocess.PIPE, env=environ, cwd=ROOT
    ) as program:
        assert program.stdout
        for line in program.stdout:
            if b'"tool.completed"' in line:
                taken = time.perf_counter() - started
    return taken


async def _start_all(opened: ContainerPool) -> float:
    started = time.perf_counter()
    found = await asyncio.gather(*(opened.get_or_create_container(f"s{n}", "bench") for n in range(CONTAINERS)))
    taken = time.perf_counter() - started
    for _, container_id in found:
        await opened.release(container_id)
    return taken
