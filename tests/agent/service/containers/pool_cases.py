"""A pool on a private engine, whose containers run this checkout with the libraries of the tests."""

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
from tests.docker_engine import IMAGE, run_engine
from tests.house.source_tree import ROOT

EXECUTOR_IMAGE = "windlass-executor-test:1"
_DOCKERFILE = f"""FROM {IMAGE}
ENV PYTHONPATH=/opt/windlass:/opt/site PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["python3", "-c", "from cli.main import main; main()", "executor", "--in-container"]
"""
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
    subprocess.run(
        ["docker", "build", "-q", "-t", EXECUTOR_IMAGE, "-"],
        input=_DOCKERFILE.encode(),
        env=env,
        check=True,
        capture_output=True,
    )


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
async def open_pool(socket: Path, root: Path, options: PoolOptions) -> AsyncIterator[ContainerPool]:
    engine = Engine(socket)
    warnings: list[str] = []
    pool = await ContainerPool.open(engine, WorkspaceStore(root), options, warnings.append)
    try:
        yield pool
    finally:
        await pool.close()
        await engine.close()
    assert warnings == []
