"""What the engine is asked to create for an executor."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from agent.service.containers.executor_container import (
    ContainerFolders,
    Identity,
    PoolOptions,
    container_config,
    pool_name,
)

FOLDERS = ContainerFolders(workspace=Path("/w/ws"), data=Path("/w/data"), run=Path("/w/run"))
OPTIONS = PoolOptions(image="image:1", secrets={"ANTHROPIC_AUTH_TOKEN": "sk-secret"}, environment={"DEBUG": "true"})
IDENTITY = Identity(
    number="0a1b2c3d4e5f", pool="p", manager="m", mode="ephemeral", session_id="session-one", user_id="anna"
)


def config(**options: object) -> dict[str, object]:
    return dict(container_config(IDENTITY, FOLDERS, replace(OPTIONS, **options), (1000, 1000)))  # type: ignore[arg-type]


def host_config(**options: object) -> dict[str, object]:
    return cast("dict[str, object]", config(**options)["HostConfig"])


def test_image_labels_and_environment_are_those_of_the_session() -> None:
    found = config()
    assert found["Image"] == "image:1"
    assert found["Labels"] == {
        "owner": "executor_manager",
        "session_id": "session-one",
        "user_id": "anna",
        "container_mode": "ephemeral",
        "windlass.pool": "p",
        "windlass.manager": "m",
        "windlass.container": "exec-0a1b2c3d4e5f",
    }
    environment = cast("list[str]", found["Env"])
    assert {"WORKSPACE_PATH=/workspace", "SESSION_ID=session-one", "USER_ID=anna", "DEBUG=true"} <= set(environment)


def test_no_secret_is_in_what_the_engine_shows() -> None:
    assert "sk-secret" not in json.dumps(config())


def test_the_container_is_reached_from_this_machine_only_and_has_no_rights() -> None:
    found = host_config()
    assert found["PortBindings"] == {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}
    assert found["ExtraHosts"] == ["host.docker.internal:host-gateway"]
    assert (found["AutoRemove"], found["ReadonlyRootfs"], found["Privileged"]) == (True, True, False)
    assert (found["CapDrop"], found["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert config()["User"] == "1000:1000"
    assert "docker.sock" not in json.dumps(config())


def test_resources_are_unlimited_unless_limits_are_set() -> None:
    names = ("Memory", "NanoCpus", "PidsLimit")
    assert [host_config()[name] for name in names] == [0, 0, 0]
    limited = host_config(memory_bytes=4 * 1024**3, cpus=2.0, processes=100)
    assert [limited[name] for name in names] == [4294967296, 2_000_000_000, 100]


def test_only_workspace_and_data_can_be_written() -> None:
    mounts = cast("list[dict[str, object]]", host_config(mounts={"/opt/x": Path("/x")})["Mounts"])
    assert {(mount["Target"], mount["ReadOnly"]) for mount in mounts} == {
        ("/workspace", False),
        ("/data", False),
        ("/run/windlass", True),
        ("/opt/x", True),
    }


def test_sessions_that_begin_alike_have_containers_of_their_own() -> None:
    first, second = (replace(IDENTITY, number=number, session_id=f"aaaaaaaa-{number}") for number in ("1", "2"))
    assert first.name == "executor-aaaaaaaa-1"
    assert second.name == "executor-aaaaaaaa-2"
    assert replace(IDENTITY, session_id="").name == "executor-warm-0a1b2c3d4e5f"


def test_pools_of_other_folders_have_other_names(tmp_path: Path) -> None:
    assert pool_name(tmp_path) == pool_name(tmp_path / "x" / "..")
    assert pool_name(tmp_path) != pool_name(tmp_path / "x")
