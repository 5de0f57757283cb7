"""What goes wrong with an engine, an image or a container is said, and the next command works where it can."""

import asyncio
import os
import signal
import socket
from contextlib import closing
from functools import partial
from pathlib import Path
from time import time

import pytest

from agent.backends.docker import engine as engine_module
from agent.backends.docker.engine import check_socket
from agent.backends.sandbox import detect
from agent.backends.sandbox.runner import disk_full_reason
from agent.backends.sandbox.types import MIB, ResourceLimits
from agent.vocabulary.errors import SandboxError
from tests.agent.backends.backend_cases import find_survivors, open_container, wait_for_file
from tests.docker_engine import OWNER, docker, run_engine
from tests.programs import needs
from tests.sandbox.test_container import sh

pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Let containers of this test have other limits than usual."""
    monkeypatch.setattr(detect, "build_policy", partial(detect.build_policy, limits=ResourceLimits(**limits)))


async def test_a_killed_container_is_reported_and_replaced(engine_socket: Path, tmp_path: Path) -> None:
    async with open_container(tmp_path, engine_socket) as backend:
        call = asyncio.create_task(sh(backend.runner, "touch started; sleep 55", tmp_path))
        await wait_for_file(tmp_path / "started")
        name = docker(engine_socket, "ps", "-q", "--filter", f"label=windlass.workspace={tmp_path}").strip()
        docker(engine_socket, "kill", name)
        with pytest.raises(OSError, match="the container has ended while a command ran"):
            await call
        assert (await sh(backend.runner, "echo again", tmp_path)).output == b"again\n"


async def test_a_command_that_needs_too_much_memory_is_killed_alone(
    engine_socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, memory_bytes=128 * MIB)
    async with open_container(tmp_path, engine_socket) as backend:
        found = await sh(backend.runner, "python3 -c 'x = bytearray(400_000_000); print(len(x))'", tmp_path)
        assert (found.exit_code, found.timed_out, b"400000000" in found.output) == (137, False, False)
        assert (await sh(backend.runner, "echo again", tmp_path)).output == b"again\n"


async def test_processes_beyond_the_limit_are_refused(
    engine_socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, processes=40)
    forks = """
import os, time
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except BlockingIOError:
    print("refused", count < 40)
"""
    async with open_container(tmp_path, engine_socket) as backend:
        assert (await sh(backend.runner, f"python3 -c '{forks}'", tmp_path)).output == b"refused True\n"
        assert (await sh(backend.runner, "echo again", tmp_path)).output == b"again\n"


async def test_a_full_disk_in_the_container_is_an_error_of_the_command(
    engine_socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, scratch_bytes=16 * MIB)
    async with open_container(tmp_path, engine_socket) as backend:
        for folder in ("/tmp", "~", "/dev/shm"):
            found = await sh(backend.runner, f"head -c 40M /dev/zero > {folder}/big; rm {folder}/big", tmp_path)
            assert b"No space left on device" in found.output
        assert (await sh(backend.runner, "touch $TMPDIR/x && echo again", tmp_path)).output == b"again\n"


async def test_a_command_that_fills_the_disk_of_the_workspace_is_stopped(
    engine_socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.statvfs(tmp_path)
    free = found.f_bavail * found.f_frsize - 100 * MIB
    limit(monkeypatch, free_disk_bytes=free)
    async with open_container(tmp_path, engine_socket) as backend:
        stopped = await sh(backend.runner, "for i in {1..8}; do head -c 100M /dev/zero > f$i; done; sleep 20", tmp_path)
        assert (stopped.exit_code, stopped.cancelled) == (1, False)
        assert stopped.output.endswith(disk_full_reason(free).encode())


async def test_a_missing_image_is_said_with_how_to_get_one(engine_socket: Path, tmp_path: Path) -> None:
    async with open_container(tmp_path, engine_socket, image="no-such-image") as backend:
        with pytest.raises(SandboxError, match="no image no-such-image") as caught:
            await backend.ready()
        assert "`agent docker build` builds the default image" in caught.value.hint


async def test_a_workspace_of_root_is_refused(engine_socket: Path, tmp_path: Path) -> None:
    async with open_container(tmp_path, engine_socket) as backend:
        os.chown(tmp_path, 0, 0)
        with pytest.raises(SandboxError, match="belongs to root"):
            await backend.ready()


async def test_no_engine_is_said(tmp_path: Path) -> None:
    async with open_container(tmp_path, tmp_path / "missing.sock") as backend:
        with pytest.raises(SandboxError, match="no Docker engine is running"):
            await backend.ready()


async def test_an_engine_that_never_answers_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "TIMEOUT_S", 0.2)
    path = tmp_path / "docker.sock"
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen(8)
        async with open_container(tmp_path, path) as backend:
            with pytest.raises(SandboxError, match="does not answer"):
                await backend.ready()


async def test_an_engine_that_is_stopped_is_said_and_ends_the_command(tmp_path: Path) -> None:
    mark = f"56.{os.getpid():07}"
    with run_engine() as engine:
        async with open_container(tmp_path, engine) as backend:
            call = asyncio.create_task(sh(backend.runner, f"touch started; sleep {mark}", tmp_path))
            await wait_for_file(tmp_path / "started")
            os.kill(int((engine.parent / "pid").read_text()), signal.SIGTERM)
            with pytest.raises(OSError, match="the Docker engine was stopped"):
                await call
            assert find_survivors(mark) == []
            with pytest.raises(OSError):
                await sh(backend.runner, "true", tmp_path)


async def test_the_clock_may_be_set_while_a_command_runs(
    engine_socket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_container(tmp_path, engine_socket) as backend:
        for skew in (86_400, -86_400):
            monkeypatch.setattr("time.time", lambda: time() + skew)  # noqa: B023 (used in this round only)
            found = await sh(backend.runner, "sleep 0.2; echo in time", tmp_path)
            assert (found.output, found.timed_out) == (b"in time\n", False)
            assert (await sh(backend.runner, "sleep 60", tmp_path, timeout_s=1)).timed_out


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_a_user_without_the_right_to_the_socket_is_told_how_to_get_it(tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        path.chmod(0o660)
        os.seteuid(OWNER)
        try:
            with pytest.raises(SandboxError, match="permission denied") as caught:
                check_socket(path)
        finally:
            os.seteuid(0)
    assert "usermod -aG docker" in caught.value.hint
