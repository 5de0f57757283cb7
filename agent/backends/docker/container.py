"""The configuration of a container from a policy, as a pure function."""

import hashlib
import json
import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.backends.sandbox.bubblewrap.argv import SHARED_MEMORY_BYTES, STARTER, STARTER_SOURCE
from agent.backends.sandbox.types import MIB, PROXY_SOCKET, ResourceLimits, SandboxPolicy
from tooling.contract.fast_dataclass import dataclass

# Sockets of the host program; the folder is mounted read-only.
SOCKETS = PROXY_SOCKET.parent
WORKSPACES = Path("/workspace")
TEMPORARY = Path("/tmp")
USER_LABEL, WORKSPACE_LABEL, CONFIG_LABEL = "windlass.user", "windlass.workspace", "windlass.config"
_LOG_BYTES = "64k"
_CPU = 1_000_000_000
# The first process: receives the control socket, the input of the starter, and then becomes the starter.
BOOTSTRAP = f"""
import os, socket, sys
path, link, target = sys.argv[1:]
os.symlink(target, link)
outside = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
outside.connect(path)
name, fds, _, _ = socket.recv_fds(outside, 4096, 1)
os.makedirs(name.decode(), 0o700)
os.dup2(fds[0], 0)
os.close(fds[0])
os.execv(sys.executable, [sys.executable, "-I", "-S", "{STARTER}"])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """A container to create: the engine's configuration, and what distinguishes it from others.

    A container that cannot restart is created anew each time.
    """

    labels: Mapping[str, str]
    config: Mapping[str, object]
    can_restart: bool = True

    @property
    def key(self) -> str:
        """A short hash of this configuration."""
        return hashlib.sha256(json.dumps([self.labels, self.config], sort_keys=True).encode()).hexdigest()[:16]

    def create_request(self, socket_name: str) -> Mapping[str, object]:
        """Return the create request for the engine; the first process connects to this socket."""
        workspace = self.labels[WORKSPACE_LABEL]
        link = str(WORKSPACES / (Path(workspace).name or "root"))
        argv = ["python3", "-I", "-S", "-c", BOOTSTRAP, str(SOCKETS / socket_name), link, workspace]
        return {**self.config, "Entrypoint": argv, "Cmd": [], "Labels": {**self.labels, CONFIG_LABEL: self.key}}


def plan_container(
    policy: SandboxPolicy,
    *,
    workspace: Path,
    image: str,
    sockets: Path,
    etc: Mapping[str, Path],
    seccomp: str,
    volumes: tuple[Path, ...] = (),
    is_podman: bool = False,
) -> ContainerPlan:
    """Return the container for a policy; `etc` maps files to show in /etc.

    The `volumes` of the image are in memory, like everything outside the workspace: the engine would store
    them on disk, without a limit.
    Podman cannot assign a tmpfs to a user: there all users of the container may write to it.
    """
    limits = policy.limits
    owner = f",uid={policy.uid},gid={policy.gid}" if not is_podman else ""
    binds, temporary = _mounts(policy, owner)
    binds = {**binds, STARTER: (STARTER_SOURCE, False), SOCKETS: (sockets, False)}
    binds |= {Path("/etc", name): (source, False) for name, source in etc.items()}
    config: Mapping[str, object] = {
        "Image": image,
        "User": f"{policy.uid}:{policy.gid}",
        "WorkingDir": "/",
        "Hostname": "windlass",
        "NetworkDisabled": True,
        "AttachStdin": False,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "Mounts": [
                *(_bind(target, source, is_writable=rw) for target, (source, rw) in sorted(binds.items())),
                *(_in_memory(path, limits) for path in volumes if path not in binds and path not in temporary),
            ],
            "Tmpfs": {str(path): options for path, options in sorted(temporary.items())},
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp}"],
            "Privileged": False,
            "IpcMode": "private",
            "ShmSize": min(SHARED_MEMORY_BYTES, limits.scratch_bytes),
            "PidsLimit": limits.processes or 0,
            "Memory": limits.memory_bytes or 0,
            "MemorySwap": limits.memory_bytes or 0,
            "NanoCpus": len(os.sched_getaffinity(0)) * _CPU,
            "Ulimits": [*_ulimits(limits, is_podman=is_podman)],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": _LOG_BYTES}},
            "RestartPolicy": {"Name": "no"},
        },
    }
    labels = {USER_LABEL: str(os.getuid()), WORKSPACE_LABEL: str(workspace)}
    # After a restart only root may write to these; with Podman this applies to all tmpfs folders.
    return ContainerPlan(labels=labels, config=config, can_restart=not (is_podman or volumes))


def _ulimits(limits: ResourceLimits, *, is_podman: bool) -> Iterator[Mapping[str, object]]:
    # Podman requests more processes than allowed unless a limit is given; PidsLimit limits their number anyway.
    processes = _max_processes_of_user() if is_podman else None
    for name, value in (
        ("core", 0),
        ("fsize", limits.file_bytes),
        ("nofile", limits.open_files),
        ("nproc", processes),
    ):
        if value is not None:
            yield {"Name": name, "Soft": value, "Hard": value}


def _max_processes_of_user() -> int:
    """Return the maximum number of processes of a user on this machine."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return most if limit == resource.RLIM_INFINITY else min(limit, most)


def _mounts(policy: SandboxPolicy, owner: str) -> tuple[dict[Path, tuple[Path, bool]], dict[Path, str]]:
    """Return the bind mounts and the tmpfs folders: for the same path the later entry wins, as in the sandbox."""
    size = f"size={policy.limits.scratch_bytes}"
    temporary = {
        TEMPORARY: f"rw,exec,nosuid,nodev,mode=1777,{size}",
        WORKSPACES: f"rw,nosuid,nodev,noexec,mode={'0755' if owner else '1777'},size={MIB}{owner}",
        policy.home: f"rw,exec,nosuid,nodev,mode={'0700' if owner else '1777'},{size}{owner}",
    }
    binds = dict(_binds(policy))
    for folder in policy.hidden_folders:
        binds.pop(folder, None)
        temporary[folder] = f"ro,nosuid,nodev,noexec,mode=0500,size=4096{owner}"
    for file in policy.hidden_files:
        binds[file] = (Path("/dev/null"), False)
    for folder in policy.outputs:
        binds[folder] = (folder, False)
    return binds, {path: options for path, options in temporary.items() if path not in binds}


def _binds(policy: SandboxPolicy) -> Iterator[tuple[Path, tuple[Path, bool]]]:
    yield from ((path, (path, True)) for path in (*policy.writable, *policy.pinned))
    yield from ((path, (path, False)) for path in policy.protected)
    is_shown = policy.home in policy.writable
    homes = [(path, False) for path in policy.frozen] + [(path, True) for path in policy.thawed]
    yield from ((path, (path, rw)) for path, rw in homes if is_shown or not path.is_relative_to(policy.home))


def _in_memory(volume: Path, limits: ResourceLimits) -> Mapping[str, object]:
    # Unlike an entry of `Tmpfs`, this replaces a volume of the image.
    return {"Type": "tmpfs", "Target": str(volume), "TmpfsOptions": {"SizeBytes": limits.scratch_bytes, "Mode": 0o1777}}


def _bind(target: Path, source: Path, *, is_writable: bool) -> Mapping[str, object]:
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": str(target),
        "ReadOnly": not is_writable,
        "BindOptions": {"Propagation": "rprivate"},
    }
