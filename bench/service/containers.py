"""Measure a command in the container of `--backend docker` against `docker exec` and `docker run`."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agent.backends.backend import Backend, BackendOptions
from agent.backends.table import build_backend
from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from tests.docker_engine import IMAGE, OWNER, docker, run_engine
from tooling.contract.command import CommandRequest

ROUNDS = 30
STARTS = 8
CANCELS = 10
# Time within which cancelling must have killed everything.
MAX_CANCEL_MS = 2000


def container() -> list[BenchResult]:
    """Measure commands, the first command, and cancelling, with a private engine; needs root and dockerd."""
    if os.getuid() or shutil.which("dockerd") is None:
        print("left out: needs root and dockerd", file=sys.stderr)
        return []
    with run_engine() as engine, tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        return _measure(engine, Path(name).resolve(), loop)


def _measure(engine: Path, root: Path, loop: asyncio.Runner) -> list[BenchResult]:
    workspace = root / "workspace"
    workspace.mkdir()
    os.chown(workspace, OWNER, OWNER)
    root.chmod(0o755)
    options = BackendOptions(
        workspace=workspace,
        environ={**os.environ, "DOCKER_HOST": f"unix://{engine}"},
        image=IMAGE,
        socket_dir=root / "net",
    )

    async def open_backend() -> Backend:
        return build_backend("docker", options)

    def command(backend: Backend, words: Sequence[str] = ("true",)) -> float:
        request = CommandRequest(argv=tuple(words), cwd=workspace, timeout_s=60)
        started = time.perf_counter()
        assert loop.run(backend.runner.run(request)).exit_code == 0
        return time.perf_counter() - started

    def plain(*words: str) -> float:
        started = time.perf_counter()
        env = {**os.environ, "DOCKER_HOST": f"unix://{engine}"}
        subprocess.run(["docker", *words, "true"], env=env, check=True, capture_output=True)
        return time.perf_counter() - started

    def first_command() -> float:
        started = time.perf_counter()
        backend = loop.run(open_backend())
        command(backend)
        taken = time.perf_counter() - started
        loop.run(backend.close())
        return taken

    backend = loop.run(open_backend())
    command(backend)
    name = docker(engine, "ps", "-q").split()[0]
    samples, baselines = sample_interleaved(ROUNDS, lambda: command(backend), lambda: plain("exec", name))
    (cancels,) = sample_interleaved(CANCELS, lambda: loop.run(_cancel(backend, workspace)))
    loop.run(backend.close())
    firsts, runs = sample_interleaved(STARTS, first_command, lambda: plain("run", "--rm", "--network", "none", IMAGE))
    return [
        ratio("`true` in a container against `docker exec … true`", 1.3, samples, baselines),
        ratio("first command in a container, self-test included, against `docker run --rm … true`", 2.0, firsts, runs),
        milliseconds("cancelled in a container → every process dead", MAX_CANCEL_MS, cancels),
    ]


async def _cancel(backend: Backend, workspace: Path) -> float:
    """Cancel a command whose child ignores SIGTERM, and return the time until the call has ended."""
    started = workspace / "started"
    words = ("bash", "-c", "(trap '' TERM; setsid sleep 60 &); touch started; sleep 60")
    call = asyncio.ensure_future(backend.runner.run(CommandRequest(argv=words, cwd=workspace, timeout_s=60)))
    while not started.exists():  # noqa: ASYNC110 (another process creates it)
        await asyncio.sleep(0.01)
    started.unlink()
    began = time.perf_counter()
    call.cancel()
    await asyncio.wait({call})
    return time.perf_counter() - began
