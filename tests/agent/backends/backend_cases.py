"""The backends that the contract suites run against; container adapters join here."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.backends.host import HostCommandRunner, build_host_executor
from agent.backends.process.environment import clean_environment
from agent.backends.process.host_process import KILL_TIMEOUT_S
from agent.backends.sandbox.runner import SandboxCommandRunner, build_sandbox_executor, build_sandbox_runner
from tests.tooling.tool_harness import NoUser
from tooling.approvals.policy import PolicyApprover
from tooling.contract.command import CommandRunner
from tooling.contract.tool import ToolExecutor

BACKENDS = ("host", "sandbox", "landlock")
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
GRACE_S = 0.2
# How long commands of this process sleep that are looked for later; other tests run beside it.
MARK = f"71.{os.getpid():07}"


def make_runner(backend: str, workspace: Path) -> CommandRunner:
    if backend == "host":
        return HostCommandRunner(clean_environment(ENVIRON), grace_s=GRACE_S)
    return make_sandbox_runner(backend, workspace)


def make_sandbox_runner(backend: str, workspace: Path) -> SandboxCommandRunner:
    runner = build_sandbox_runner(workspace=workspace, environ=ENVIRON, grace_s=GRACE_S)
    if backend == "landlock":
        runner.use_landlock()
    return runner


@contextmanager
def make_executor(backend: str, workspace: Path, *, plugin_paths: tuple[str, ...] = ()) -> Iterator[ToolExecutor]:
    approver = PolicyApprover(mode="ask")
    secrets = ("correct-horse-battery",)
    environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-not-for-commands"}
    if backend == "host":
        host, _ = build_host_executor(
            environ=environ, approver=approver, asker=NoUser(), secrets=secrets, plugin_paths=plugin_paths
        )
        yield host
        return
    runner = build_sandbox_runner(workspace=workspace, environ=environ, grace_s=GRACE_S)
    if backend == "landlock":
        runner.use_landlock()
    boxed, _ = build_sandbox_executor(
        runner=runner, approver=approver, asker=NoUser(), secrets=secrets, plugin_paths=plugin_paths
    )
    yield boxed
    runner.close()


async def wait_for_file(path: Path) -> None:
    """Wait until another process has made a file."""
    async with asyncio.timeout(10):
        # The other side is no coroutine that could set an event.
        while path.name not in list_names(path.parent):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def list_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def find_processes(marker: str) -> list[str]:
    """Return the command lines of processes that hold the marker, zombies excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if marker in line and int(entry.name) != os.getpid():
                    found.append(line)
        except OSError:
            continue
    return found


def find_survivors(marker: str) -> list[str]:
    """Return who still lives a moment later: on a busy machine it takes a while to die of a signal."""
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while (found := find_processes(marker)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
