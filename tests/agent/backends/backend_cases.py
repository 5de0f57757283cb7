"""The backends that the contract suites run against; container backends join here."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from agent.backends.backend import Backend, BackendOptions
from agent.backends.host import HostCommandRunner
from agent.backends.process.environment import clean_environment
from agent.backends.process.host_process import KILL_TIMEOUT_S
from agent.backends.sandbox.runner import SandboxCommandRunner, build_sandbox_runner
from agent.backends.table import build_backend
from agent.backends.tool_executor import LocalToolExecutor, build_tool_executor
from tests.docker_engine import ENGINE_VARIABLE, IMAGE, OWNER, run_engine
from tests.programs import needs
from tests.running_processes import read_all
from tests.tooling.tool_harness import NoUser, unrestricted_backend
from tooling.approvals.policy import PolicyApprover
from tooling.contract.command import CommandRunner
from tooling.files.temp_dir import TempDir
from tooling.safety.secrets.redact import Redactor

BuildRunner: TypeAlias = Callable[..., SandboxCommandRunner]

SANDBOXES = (pytest.param("bubblewrap", marks=needs("bwrap")), "landlock")
BACKENDS = ("host", *SANDBOXES)
CONTAINER = pytest.param("docker", marks=(pytest.mark.slow, needs("docker", "dockerd")))
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
GRACE_S = 0.2
# How long commands of this process sleep, which distinguishes them from those of tests that run at the same time.
MARK = f"71.{os.getpid():07}"


@pytest.fixture
def build_runner() -> Iterator[BuildRunner]:
    """Return a function like `build_sandbox_runner` whose runners are closed after the test.

    `sandbox` names the one to use; without it, it is the best of this machine.
    """
    with ExitStack() as stack:

        def build(workspace: Path, sandbox: str = "", **options: object) -> SandboxCommandRunner:
            given: dict[str, object] = {"environ": ENVIRON, "grace_s": GRACE_S, **options}
            runner = build_sandbox_runner(workspace=workspace, sandbox_type=sandbox or "auto", **given)  # type: ignore[arg-type]
            stack.callback(runner.close)
            assert sandbox in ("", runner.describe().name)
            return runner

        yield build


def make_runner(backend: str, workspace: Path, build_runner: BuildRunner) -> CommandRunner:
    if backend == "host":
        return HostCommandRunner(clean_environment(ENVIRON), grace_s=GRACE_S)
    return build_runner(workspace, backend)


@pytest.fixture(scope="session")
def engine_socket() -> Iterator[Path]:
    """Return the socket of a Docker engine that the tests of this process share, or of another engine that is given."""
    if given := os.environ.get(ENGINE_VARIABLE):
        yield Path(given)
        return
    with run_engine() as socket:
        yield socket


@asynccontextmanager
async def open_container(
    workspace: Path, socket: Path, environ: Mapping[str, str] = ENVIRON, **options: object
) -> AsyncIterator[Backend]:
    """Yield the Docker backend, as a run builds it; the workspace belongs to an ordinary user."""
    os.chown(workspace, OWNER, OWNER)
    with TempDir() as sockets:
        given: dict[str, object] = {"image": IMAGE, "socket_dir": sockets / "net", **options}
        backend = build_backend(
            "docker",
            BackendOptions(
                workspace=workspace,
                environ={**environ, "DOCKER_HOST": f"unix://{socket}"},
                **given,  # type: ignore[arg-type]
            ),
        )
        try:
            yield backend
        finally:
            await backend.close()


@asynccontextmanager
async def open_executor(name: str, workspace: Path, socket: Path | None) -> AsyncIterator[LocalToolExecutor]:
    """Yield the tools of a run on a backend; the host's commands need no approval."""
    environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-not-for-commands"}
    async with _open_backend(name, workspace, environ, socket) as backend:
        executor, _ = build_tool_executor(
            backend,
            approver=PolicyApprover(mode="ask"),
            asker=NoUser(),
            redactor=Redactor(("correct-horse-battery",)),
        )
        try:
            yield executor
        finally:
            await executor.close()


@asynccontextmanager
async def _open_backend(
    name: str, workspace: Path, environ: Mapping[str, str], socket: Path | None
) -> AsyncIterator[Backend]:
    if name == "host":
        yield unrestricted_backend(environ)
    elif name == "docker":
        assert socket is not None
        async with open_container(workspace, socket, environ) as container:
            yield container
    else:
        with TempDir() as sockets:
            options = BackendOptions(
                workspace=workspace, environ=environ, sandbox_type=name, socket_dir=sockets / "net"
            )
            backend = build_backend("sandbox", options)
            try:
                yield backend
            finally:
                await backend.close()


async def wait_for_file(path: Path) -> None:
    """Wait until another process has created a file."""
    async with asyncio.timeout(10):
        # The other process cannot set an event of this loop.
        while path.name not in list_names(path.parent):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def list_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# Tried one after another, where a command must have started before its time limit ends it.
TIME_LIMITS = (0.4, 2.0, 10.0, 50.0)


def find_processes(marker: str) -> list[str]:
    """Return the command lines that contain the marker; zombies have none."""
    lines = [(pid, text.replace(b"\0", b" ").decode(errors="replace")) for pid, text in read_all("cmdline")]
    return [line for pid, line in lines if marker in line and pid != os.getpid()]


def find_survivors(marker: str) -> list[str]:
    """Return the processes that are still alive a moment later: a busy machine delivers signals late."""
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while (found := find_processes(marker)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
