"""A backend that outlives a run: what the next run finds, and what it does not."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.backends.backend import Backend, BackendOptions
from agent.backends.shared import SharedBackend
from tests.agent.backends.backend_cases import MARK, find_processes, find_survivors
from tests.programs import needs
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = [pytest.mark.slow, needs("bwrap")]


@pytest.fixture
async def shared() -> AsyncIterator[SharedBackend]:
    backend = SharedBackend()
    yield backend
    await backend.close()


@pytest.fixture
def options(tmp_path: Path) -> BackendOptions:
    (tmp_path / "ws").mkdir()
    return BackendOptions(workspace=tmp_path / "ws", environ={"PATH": os.environ["PATH"]}, socket_dir=tmp_path / "net")


async def sh(backend: Backend, options: BackendOptions, command: str) -> CommandOutput:
    request = CommandRequest(argv=("bash", "-c", command), cwd=options.workspace, timeout_s=30)
    return await backend.runner.run(request)


async def test_the_next_run_finds_files_and_background_commands(
    shared: SharedBackend, options: BackendOptions, tmp_path: Path
) -> None:
    backend, jobs = shared.open("sandbox", options)
    request = CommandRequest(argv=("sleep", MARK), cwd=options.workspace, timeout_s=0)
    job = await jobs.start("sleep", request, tmp_path / "job.txt")
    await sh(backend, options, "echo kept > /tmp/note")
    await backend.close()
    backend, jobs = shared.open("sandbox", options)
    assert jobs.get(job.id) is job
    assert (await sh(backend, options, "cat /tmp/note; pgrep -x sleep | wc -l")).output == b"kept\n1\n"
    await backend.close()
    await shared.close()
    assert find_survivors(MARK) == []


async def test_a_run_with_other_folders_gets_a_new_sandbox(
    shared: SharedBackend, options: BackendOptions, tmp_path: Path
) -> None:
    backend, jobs = shared.open("sandbox", options)
    request = CommandRequest(argv=("sleep", MARK), cwd=options.workspace, timeout_s=0)
    await jobs.start("sleep", request, tmp_path / "job.txt")
    await sh(backend, options, "echo kept > /tmp/note")
    assert find_processes(MARK)
    (tmp_path / "more").mkdir()
    wider = replace(options, extra_dirs=(tmp_path / "more",))
    backend, _ = shared.open("sandbox", wider)
    found = await sh(backend, wider, f"touch {tmp_path}/more/x && [ ! -e /tmp/note ]")
    assert (found.exit_code, found.output) == (0, b"")
    assert find_survivors(MARK) == []


async def test_hosts_allowed_in_one_run_are_closed_in_the_next(shared: SharedBackend, options: BackendOptions) -> None:
    attempts: list[list[tuple[str, bool]]] = [[], []]
    for number, found in enumerate(attempts):
        run = replace(options, on_attempt=lambda attempt, found=found: found.append((attempt.host, attempt.allowed)))
        backend, _ = shared.open("sandbox", run)
        if number == 0:
            await backend.allow_host("host.example")
        await sh(backend, options, "curl -sS -m 5 http://host.example/")
        await backend.close()
    assert attempts == [[("host.example", True)], [("host.example", False)]]


async def test_a_repository_of_one_run_is_protected_in_the_next(shared: SharedBackend, options: BackendOptions) -> None:
    hook = "git init -q .; echo evil > .git/hooks/post-commit"
    backend, _ = shared.open("sandbox", options)
    assert (await sh(backend, options, hook)).exit_code == 0
    await backend.close()
    backend, _ = shared.open("sandbox", options)
    assert (await sh(backend, options, hook)).exit_code != 0
