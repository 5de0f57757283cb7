"""A pool on a private engine, whose containers run this checkout with the libraries of the tests."""

import json
import os
import subprocess
import sysconfig
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.backends.docker.engine import Engine
from agent.service.containers.executor_container import PoolOptions
from agent.service.containers.pool import ContainerPool
from agent.service.workspaces.layout import WorkspaceStore
from tests.docker_engine import IMAGE, docker, run_engine
from tests.house.source_tree import ROOT

EXECUTOR_IMAGE = "windlass-executor-test:1"
_DOCKERFILE = f"""FROM {IMAGE}
ENV PYTHONPATH=/opt/windlass:/opt/site PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["python3", "-c", "from cli.main import main; main()", "executor", "--in-container"]
"""
# Starts at once and behaves as it is told: for everything about a pool that is not about tasks.
STUB_IMAGE = "windlass-stub-test:1"
_STUB = """
import http.server, os, sys
mode = os.environ["STUB"]
if mode == "exit":
    sys.exit("error: no model is set")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/oom":
            hog = [bytearray(os.urandom(1 << 20)) for _ in range(512)]
        self.send_response(200 if mode == "ok" else 503)
        self.end_headers()
        self.wfile.write(b'{"status": "ok"}')
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
_STUB_DOCKERFILE = f"FROM {IMAGE}\nENTRYPOINT {json.dumps(['python3', '-S', '-c', _STUB])}\n"
# The image has Debian's Python, which is the same version as that of the tests, or the libraries would not load.
MOUNTS: Mapping[str, Path] = {"/opt/windlass": ROOT, "/opt/site": Path(sysconfig.get_paths()["purelib"])}
SCRIPTS = Path("/opt/scripts")


@pytest.fixture(scope="session")
def pool_engine() -> Iterator[Path]:
    """Return the socket of an engine that publishes ports, with the image of executors."""
    with run_executor_engine() as socket:
        yield socket


@contextmanager
def run_executor_engine() -> Iterator[Path]:
    with run_engine(publishes_ports=True) as socket:
        build_image(socket)
        yield socket


def build_image(socket: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{socket}", "DOCKER_BUILDKIT": "0"}
    for image, dockerfile in ((EXECUTOR_IMAGE, _DOCKERFILE), (STUB_IMAGE, _STUB_DOCKERFILE)):
        build = ["docker", "build", "-q", "-t", image, "-"]
        subprocess.run(build, input=dockerfile.encode(), env=env, check=True, capture_output=True)


def stub_options(mode: str = "ok", **changes: object) -> PoolOptions:
    """Return options for containers that only say that they are ready."""
    options = PoolOptions(
        image=STUB_IMAGE,
        environment={"STUB": mode},
        start_timeout_s=120.0,
        ready_timeout_s=120.0,
        health_interval_s=1.0,
    )
    return replace(options, **changes)  # type: ignore[arg-type]


def count_containers(socket: Path) -> int:
    # On a busy machine the engine still lists containers for a while that it is removing.
    states = docker(socket, "ps", "-a", "--format", "{{.State}}", "--filter", "label=owner=executor_manager").split()
    return len([state for state in states if state != "removing"])


def pool_options(scripts: Path, script: str = "reply.jsonl", **changes: object) -> PoolOptions:
    """Return options for containers with a scripted model."""
    options = PoolOptions(
        image=EXECUTOR_IMAGE,
        environment={"DEFAULT_MODEL": f"script:{SCRIPTS / script}", "AGENT_MEMORY": "false"},
        mounts={**MOUNTS, str(SCRIPTS): scripts},
        # A busy machine must not fail a test.
        start_timeout_s=120.0,
        ready_timeout_s=240.0,
    )
    return replace(options, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def open_pool(
    socket: Path, root: Path, options: PoolOptions, warnings: list[str] | None = None
) -> AsyncIterator[ContainerPool]:
    warnings = [] if warnings is None else warnings
    engine = Engine(socket)
    pool = await ContainerPool.open(engine, WorkspaceStore(root), options, warnings.append)
    try:
        yield pool
    finally:
        await pool.close()
        await engine.close()
