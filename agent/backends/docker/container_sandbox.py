"""Runs all commands of a run in one container."""

import errno
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.backends.docker.container import SOCKETS, plan_container
from agent.backends.docker.container_process import ContainerProcess, new_temporary
from agent.backends.docker.engine import Engine
from agent.backends.docker.seccomp_profile import docker_profile
from agent.backends.egress.relay import proxy_environment, relay_argv
from agent.backends.sandbox.bubblewrap.world_sandbox import WorldSandbox
from agent.backends.sandbox.process_limits import WorkerLimits
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandRequest

OF_ROOT = "belongs to root, and commands in a container do not run as root"
OF_ROOT_HINT = "give it to an ordinary user (chown -R USER), who can also start the agent, or use --backend sandbox"
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The rest of the user's environment refers to programs and folders that the image lacks.
_PASSED = ("LANG", "LANGUAGE", "TZ", "CI", "SOURCE_DATE_EPOCH", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT")
_PASSED_TOO = ("NO_COLOR", "HOME", "USER", "LOGNAME", "SHELL")

_COVERED = (
    "writes: only the workspace and added folders, without what git reads as configuration or runs",
    "reads: the image and those folders; nothing else of this machine",
    "network: the container's own loopback, and the proxy's socket when hosts are allowed",
    "own processes, shared memory and host name; no capabilities, no new privileges, the sandbox's seccomp profile",
    "memory, processes and CPU of all commands together; processes end with their command, at the latest with the run",
)
_NOT_COVERED = (
    "commands of one run share files in /tmp and home, loopback and processes",
    "users who may use the engine's socket are root on this machine; the agent is one of them, its commands are not",
)


class _ContainerLimits(WorkerLimits):
    """The limits of a container, already set by the engine; changing them from outside would require root."""

    def apply(self, pid: int) -> None:
        """Do nothing."""


class ContainerSandbox(WorldSandbox):
    """Starts the world of the commands in a container."""

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        engine: Engine,
        workspace: Path,
        image: str,
        sockets: Path,
        volumes: tuple[Path, ...] = (),
        is_podman: bool = False,
    ) -> None:
        super().__init__(policy)
        self._engine = engine
        self._workspace = workspace
        self._image = image
        self._sockets = sockets
        self._seccomp = docker_profile(platform.machine())
        self._volumes = volumes
        self._is_podman = is_podman
        if is_podman:
            # Podman expects the path of a profile instead of its content.
            file = sockets / "seccomp.json"
            file.write_text(self._seccomp)
            self._seccomp = str(file)
        self._etc = _write_etc(policy, sockets)

    def start_world(self, policy: SandboxPolicy, stdin: int) -> ContainerProcess:
        """Start a container in the background."""
        plan = plan_container(
            replace(policy, limits=self.policy.limits),
            workspace=self._workspace,
            image=self._image,
            sockets=self._sockets,
            etc=self._etc,
            seccomp=self._seccomp,
            volumes=self._volumes,
            is_podman=self._is_podman,
        )
        return ContainerProcess(self._engine, plan, self._sockets, stdin, self.policy.environment["TMPDIR"])

    def make_limits(self, policy: SandboxPolicy) -> WorkerLimits:
        """Return no additional limits for a command."""
        return _ContainerLimits(policy.limits, None)

    def check(self, request: CommandRequest, policy: SandboxPolicy, path: str) -> None:
        """Refuse requests that cannot be passed to the container; whether the program exists is known only there."""
        if not request.cwd.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(request.cwd))
        if not policy.is_visible(request.cwd):
            raise PermissionError(errno.EACCES, "the folder is not visible in the container", str(request.cwd))
        if any("\0" in word for word in request.argv):
            raise OSError(errno.EINVAL, "a command cannot contain a null byte")

    def open_network(self, socket: Path) -> None:
        """Let later commands reach the egress proxy on this socket, which is below the mounted folder."""
        inside = str(SOCKETS / socket.relative_to(self._sockets))
        relay = relay_argv((), socket_path=inside, python="python3")
        self.policy = replace(self.policy, proxy_env=proxy_environment(), relay=relay)

    def describe(self) -> SandboxDescription:
        """Return the protections of the container and their limits."""
        return SandboxDescription(name="docker", covered=_COVERED, not_covered=_NOT_COVERED)


def container_policy(policy: SandboxPolicy, image: Mapping[str, object], *, is_rootless: bool) -> SandboxPolicy:
    """Return the sandbox policy for a container: the image provides the programs, and commands are not root."""
    uid, gid = _user_of(policy.writable[0], is_rootless=is_rootless)
    kept = {name: value for name, value in policy.environment.items() if name in (*_PASSED, *_PASSED_TOO)}
    kept |= {name: value for name, value in policy.environment.items() if name.startswith("LC_")}
    environment = {**kept, "PATH": _path_of(image), "TMPDIR": new_temporary()}
    return replace(policy, readable=(), links=(), toolchains=(), environment=environment, uid=uid, gid=gid)


def _user_of(workspace: Path, *, is_rootless: bool) -> tuple[int, int]:
    if is_rootless:
        # Root of a rootless container is the user who started the engine.
        return 0, 0
    if os.getuid():
        return os.getuid(), os.getgid()
    found = workspace.stat()
    if found.st_uid == 0:
        raise SandboxError(f"{workspace} {OF_ROOT}", hint=OF_ROOT_HINT)
    return found.st_uid, found.st_gid or found.st_uid


def volumes_of(image: Mapping[str, object]) -> tuple[Path, ...]:
    """Return the declared volumes of an image."""
    config = image.get("Config")
    volumes = config.get("Volumes") if isinstance(config, dict) else None
    return tuple(Path(os.path.normpath(str(path))) for path in sorted(volumes or ()))


def _path_of(image: Mapping[str, object]) -> str:
    config = image.get("Config")
    variables = config.get("Env") if isinstance(config, dict) else None
    found = dict(str(entry).partition("=")[::2] for entry in variables or ())
    return found.get("PATH") or _DEFAULT_PATH


def _write_etc(policy: SandboxPolicy, folder: Path) -> dict[str, Path]:
    """Write the passwd and group files for programs that look up the user."""
    user = policy.environment.get("USER", "user")
    texts = {
        "passwd": f"{user}:x:{policy.uid}:{policy.gid}::{policy.home}:/bin/bash\n".encode(),
        "group": f"{user}:x:{policy.gid}:\n".encode(),
        **{file.path.name: file.content for file in policy.generated_files if file.path.name == "gitconfig"},
    }
    for name, content in texts.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)
    return {name: folder / name for name in texts}
