"""Configuration, names and labels of an executor's container, as pure functions."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agent.service.workspaces.layout import ContainerMode
from tooling.contract.fast_dataclass import dataclass

OWNER = "executor_manager"
OWNER_LABEL, SESSION_LABEL, USER_LABEL, MODE_LABEL = "owner", "session_id", "user_id", "container_mode"
POOL_LABEL, MANAGER_LABEL, ID_LABEL = "windlass.pool", "windlass.manager", "windlass.container"
# Session id of a warm container. The name changes when a session gets it; labels cannot change.
WARM = "warm"
PORT = "8000/tcp"
WORKSPACE, DATA, RUN = "/workspace", "/data", "/run/windlass"
HOME = "/home/executor"
_MIB = 1024**2
_NANO = 1_000_000_000
_LOG_BYTES = "256k"
# The user "nobody": otherwise root would own the files that tasks write.
_NOBODY = 65534


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """Size of a pool and configuration of its containers.

    `environment` is visible to all users of the engine. `secrets` are passed in a file that only the container's user
    can read, and that is deleted after the start. `mounts` maps paths in the container to folders, mounted read-only.
    Without limits a container may use the whole machine. `callback_url` is the address at which this machine receives
    callbacks.
    """

    image: str
    max_containers: int = 10
    warm: int = 0
    tasks_per_container: int = 50
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    callback_url: str = ""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: float | None = None
    processes: int | None = None
    start_timeout_s: float = 30.0
    ready_timeout_s: float = 60.0
    health_interval_s: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFolders:
    """Host folders mounted into a container: a workspace, a data folder, and a private one for its start."""

    workspace: Path
    data: Path
    run: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identity of a container: pool, manager, user and session; `session_id` is empty for a warm container."""

    number: str
    pool: str
    manager: str
    mode: ContainerMode
    session_id: str = ""
    user_id: str = ""

    @property
    def container_id(self) -> str:
        """The id that managers and tasks use."""
        return f"exec-{self.number}"

    @property
    def name(self) -> str:
        """The name in the engine. The number distinguishes sessions whose ids start alike."""
        return f"executor-{self.session_id[:8] or WARM}-{self.number}"

    @property
    def labels(self) -> Mapping[str, str]:
        return {
            OWNER_LABEL: OWNER,
            SESSION_LABEL: self.session_id,
            USER_LABEL: self.user_id,
            MODE_LABEL: self.mode,
            POOL_LABEL: self.pool,
            MANAGER_LABEL: self.manager,
            ID_LABEL: self.container_id,
        }


def pool_name(root: Path) -> str:
    """Return the label value that distinguishes the containers of a pool from those of others on the same engine."""
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]


def container_user(*, is_rootless: bool) -> tuple[int, int]:
    """Return the user and group of containers: never root on the host."""
    if is_rootless:
        # Root of a rootless container is the user who started the engine.
        return 0, 0
    return (os.getuid(), os.getgid()) if os.getuid() else (_NOBODY, _NOBODY)


def container_config(
    identity: Identity, folders: ContainerFolders, options: PoolOptions, user: tuple[int, int]
) -> Mapping[str, object]:
    """Return the create request for the engine. It contains no secrets: the engine shows it to all its users."""
    environment = {
        "WORKSPACE_PATH": WORKSPACE,
        "AGENT_SANDBOX": DATA,
        "AGENT_CONFIG_DIR": f"{HOME}/config",
        "HOME": HOME,
        **({"SESSION_ID": identity.session_id, "USER_ID": identity.user_id} if identity.session_id else {}),
        **options.environment,
    }
    owner = f"uid={user[0]},gid={user[1]}"
    mounts = [
        _bind(WORKSPACE, folders.workspace, is_writable=True),
        _bind(DATA, folders.data, is_writable=True),
        _bind(RUN, folders.run, is_writable=False),
        *(_bind(place, source, is_writable=False) for place, source in sorted(options.mounts.items())),
    ]
    return {
        "Image": options.image,
        "User": f"{user[0]}:{user[1]}",
        "WorkingDir": WORKSPACE,
        "Hostname": "executor",
        "Env": [f"{name}={value}" for name, value in sorted(environment.items())],
        "Labels": identity.labels,
        "ExposedPorts": {PORT: {}},
        "HostConfig": {
            "AutoRemove": True,
            "Init": True,
            # Reachable from this machine only; an empty port means a random one.
            "PortBindings": {PORT: [{"HostIp": "127.0.0.1", "HostPort": ""}]},
            "ExtraHosts": ["host.docker.internal:host-gateway"],
            "Mounts": mounts,
            "Tmpfs": {
                "/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={512 * _MIB}",
                HOME: f"rw,exec,nosuid,nodev,mode=0700,size={64 * _MIB},{owner}",
            },
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            # The engine's default seccomp profile: commands in the container run under a stricter one, in a sandbox.
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "Memory": options.memory_bytes or 0,
            "MemorySwap": options.memory_bytes or 0,
            "NanoCpus": int((options.cpus or 0) * _NANO),
            "PidsLimit": options.processes or 0,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": _LOG_BYTES}},
            "RestartPolicy": {"Name": "no"},
        },
    }


def _bind(target: str, source: Path, *, is_writable: bool) -> Mapping[str, object]:
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": target,
        "ReadOnly": not is_writable,
        "BindOptions": {"Propagation": "rprivate"},
    }
