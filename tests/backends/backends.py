"""The backends that the contract suites run against; sandbox and container adapters join here."""

import asyncio
import os
from pathlib import Path

from agent.backends.environment import clean_environment
from agent.backends.host import HostCommandRunner, HostExecutor, build_host_executor
from tests.tooling.workplace import Nobody
from tooling.approvals.policy import PolicyApprover
from tooling.contract.command import CommandRunner
from tooling.contract.tool import ToolExecutor

BACKENDS = ("host",)


def runner_of(backend: str) -> CommandRunner:
    assert backend == "host"
    return HostCommandRunner(clean_environment({"PATH": os.environ["PATH"], "HOME": "/nonexistent"}), grace_s=0.2)


def executor_of(backend: str, *, plugin_paths: tuple[str, ...] = ()) -> ToolExecutor:
    assert backend == "host"
    executor, _ = build_host_executor(
        environ={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-not-for-commands"},
        approver=PolicyApprover(mode="ask"),
        asker=Nobody(),
        secrets=("correct-horse-battery",),
        plugin_paths=plugin_paths,
    )
    assert isinstance(executor, HostExecutor)
    return executor


async def appears(path: Path) -> None:
    """Wait until another process has made a file."""
    async with asyncio.timeout(10):
        # The other side is no coroutine that could set an event.
        while path.name not in names_in(path.parent):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def living(marker: str) -> list[str]:
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
