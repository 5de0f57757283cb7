"""The container of the Docker backend is a wall: no escape succeeds, and one workspace has one container."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.agent.backends.backend_cases import find_survivors, open_container, wait_for_file
from tests.docker_engine import IMAGE, OWNER, docker
from tests.programs import needs
from tests.sandbox.escape_harness import EscapeHarness
from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner

# This probe lists /var and /run, which here are those of the image.
OF_THE_IMAGE = {"read/machine-id"}
pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]


async def sh(runner: CommandRunner, command: str, cwd: Path, timeout_s: float = 30) -> CommandOutput:
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=timeout_s))


async def test_no_escape_succeeds_in_the_container(engine_socket: Path) -> None:
    with EscapeHarness(owner=OWNER) as harness:
        async with open_container(harness.workspace, engine_socket, harness.environ) as backend:
            found = await sh(backend.runner, harness.script(), harness.workspace, timeout_s=120)
            assert found.output.endswith(b"all tried\n"), found
            assert set(harness.find_escapes(found.output)) <= OF_THE_IMAGE


async def test_commands_run_as_an_ordinary_user_without_the_engine_and_the_network(
    engine_socket: Path, tmp_path: Path
) -> None:
    async with open_container(tmp_path, engine_socket) as backend:
        found = await sh(
            backend.runner,
            f"id -u; touch made; ls /var/run/docker.sock {engine_socket} /root; "
            "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; touch /etc/x; ulimit -c; "
            "readlink -f /workspace/*",
            tmp_path,
        )
    lines = found.output.decode()
    assert lines.startswith(f"{OWNER}\n")
    assert lines.count("No such file") >= 2
    assert "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n" in lines
    assert "touch: cannot touch '/etc/x'" in lines
    assert lines.endswith(f"0\n{tmp_path}\n")
    assert (tmp_path / "made").stat().st_uid == OWNER


async def test_a_workspace_has_one_container_which_is_found_again(engine_socket: Path, tmp_path: Path) -> None:
    workspace, sockets = tmp_path / "ws", tmp_path / "net"
    workspace.mkdir()
    seen, folders = [], []
    for _ in range(2):
        async with open_container(workspace, engine_socket, socket_dir=sockets) as backend:
            found = await sh(backend.runner, "ls /tmp/windlass; touch $TMPDIR/x; echo $TMPDIR", workspace)
            folders.append(found.output.decode().split())
            await sh(backend.runner, "true", workspace)
            seen += docker(engine_socket, "ps", "-q", "--filter", f"label=windlass.workspace={workspace}").split()
    assert len(seen) == 2
    assert len(set(seen)) == 1
    # The temporary folder of the first run is gone.
    assert [len(names) for names in folders] == [2, 2]
    assert folders[0] != folders[1]


async def test_the_volumes_of_an_image_are_in_memory_and_gone_afterwards(engine_socket: Path, tmp_path: Path) -> None:
    name = docker(engine_socket, "create", IMAGE, "true").strip()
    docker(engine_socket, "commit", "--change", "VOLUME /data", name, "with-volume:1")
    docker(engine_socket, "rm", name)
    workspace, sockets = tmp_path / "ws", tmp_path / "net"
    workspace.mkdir()
    for _ in range(2):
        async with open_container(workspace, engine_socket, image="with-volume:1", socket_dir=sockets) as backend:
            found = await sh(backend.runner, "ls /data; touch /data/x && stat -f -c %T /data", workspace)
            assert found.output == b"tmpfs\n"
    assert docker(engine_socket, "volume", "ls", "-q") == ""


async def test_a_container_with_other_folders_replaces_the_one_before(engine_socket: Path, tmp_path: Path) -> None:
    for _ in range(2):
        async with open_container(tmp_path, engine_socket) as backend:
            await sh(backend.runner, "true", tmp_path)
    everything = docker(engine_socket, "ps", "-aq", "--filter", f"label=windlass.workspace={tmp_path}")
    assert len(everything.split()) == 1


async def test_cancelling_ends_everything_in_the_container(engine_socket: Path, tmp_path: Path) -> None:
    mark = f"54.{os.getpid()}"
    async with open_container(tmp_path, engine_socket) as backend:
        command = f"(trap '' TERM; setsid sleep {mark} &) ; touch started; sleep {mark}"
        call = asyncio.create_task(sh(backend.runner, command, tmp_path))
        await wait_for_file(tmp_path / "started")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert find_survivors(mark) == []


async def test_commands_reach_the_proxy_only_if_a_host_is_allowed(engine_socket: Path, tmp_path: Path) -> None:
    ask = "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT x.invalid:443 HTTP/1.1\r\n\r\n' >&3 && head -n 1 <&3"
    async with open_container(tmp_path, engine_socket) as backend:
        assert (await sh(backend.runner, ask, tmp_path)).exit_code == 1
    async with open_container(tmp_path, engine_socket, allow_net=("example.org",)) as backend:
        found = await sh(backend.runner, ask, tmp_path)
        assert b"403" in found.output, found
