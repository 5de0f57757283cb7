"""The configuration of a container, compared as a whole: what it may see, change and use."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.backends.docker.container import SOCKETS as INSIDE
from agent.backends.docker.container import ContainerPlan, plan_container
from agent.backends.sandbox.bubblewrap.argv import STARTER, STARTER_SOURCE
from agent.backends.sandbox.types import GIB, MIB, ResourceLimits, SandboxPolicy

WORKSPACE = Path("/home/me/project")
SOCKETS = Path("/run/me/docker")
POLICY = SandboxPolicy(
    writable=(WORKSPACE,),
    readable=(),
    home=Path("/home/me"),
    environment={},
    limits=ResourceLimits(processes=100, memory_bytes=GIB, file_bytes=MIB, open_files=64, scratch_bytes=16 * MIB),
    protected=(WORKSPACE / ".git/hooks",),
    hidden_folders=(WORKSPACE / ".secret",),
    hidden_files=(WORKSPACE / ".env",),
    uid=1000,
    gid=1001,
)


def plan(policy: SandboxPolicy = POLICY, *, is_podman: bool = False) -> ContainerPlan:
    etc = {"passwd": SOCKETS / "passwd"}
    return plan_container(
        policy, workspace=WORKSPACE, image="an-image", sockets=SOCKETS, etc=etc, seccomp="{}", is_podman=is_podman
    )


def bind(target: Path | str, source: Path | str, *, is_read_only: bool) -> dict[str, object]:
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": str(target),
        "ReadOnly": is_read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }


def test_a_container_has_no_rights_no_network_and_only_the_workspace() -> None:
    assert plan().config == {
        "Image": "an-image",
        "User": "1000:1001",
        "WorkingDir": "/",
        "Hostname": "windlass",
        "NetworkDisabled": True,
        "AttachStdin": False,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "Mounts": [
                bind(INSIDE, SOCKETS, is_read_only=True),
                bind(STARTER, STARTER_SOURCE, is_read_only=True),
                bind("/etc/passwd", SOCKETS / "passwd", is_read_only=True),
                bind(WORKSPACE, WORKSPACE, is_read_only=False),
                bind(WORKSPACE / ".env", "/dev/null", is_read_only=True),
                bind(WORKSPACE / ".git/hooks", WORKSPACE / ".git/hooks", is_read_only=True),
            ],
            "Tmpfs": {
                "/home/me": "rw,exec,nosuid,nodev,mode=0700,size=16777216,uid=1000,gid=1001",
                "/home/me/project/.secret": "ro,nosuid,nodev,noexec,mode=0500,size=4096,uid=1000,gid=1001",
                "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=16777216",
                "/workspace": "rw,nosuid,nodev,noexec,mode=0755,size=1048576,uid=1000,gid=1001",
            },
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", "seccomp={}"],
            "Privileged": False,
            "IpcMode": "private",
            "ShmSize": 16 * MIB,
            "PidsLimit": 100,
            "Memory": GIB,
            "MemorySwap": GIB,
            "NanoCpus": len(os.sched_getaffinity(0)) * 1_000_000_000,
            "Ulimits": [
                {"Name": "core", "Soft": 0, "Hard": 0},
                {"Name": "fsize", "Soft": MIB, "Hard": MIB},
                {"Name": "nofile", "Soft": 64, "Hard": 64},
            ],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k"}},
            "RestartPolicy": {"Name": "no"},
        },
    }


def test_a_container_is_labelled_with_user_and_workspace_and_found_by_its_configuration() -> None:
    found = plan()
    request = found.create_request("abc.sock")
    assert request["Labels"] == {
        "windlass.user": str(os.getuid()),
        "windlass.workspace": str(WORKSPACE),
        "windlass.config": found.key,
    }
    assert found.key == plan().key != plan(replace(POLICY, uid=1002)).key


@pytest.mark.parametrize("is_podman", [True, False])
def test_podman_gets_what_it_can_read_and_a_new_container_each_time(*, is_podman: bool) -> None:
    found = plan(is_podman=is_podman)
    host = found.config["HostConfig"]
    assert isinstance(host, dict)
    assert found.can_restart is not is_podman
    assert any("uid=" in options for options in host["Tmpfs"].values()) is not is_podman
    assert ("nproc" in [limit["Name"] for limit in host["Ulimits"]]) is is_podman
