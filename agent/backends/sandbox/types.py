"""The sandbox port, its policy, and checks that all sandboxes share."""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agent.backends.process.environment import find_on_path
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import RunningProcess
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB
# Where the socket of the egress proxy is mounted in the sandbox.
PROXY_SOCKET = Path("/.windlass/net/proxy.sock")


def split_words(text: str) -> tuple[str, ...]:
    """Split a table that is written as text."""
    return tuple(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """The resources of one command; None means unlimited. Its time is limited by the request."""

    processes: int | None = 1024
    memory_bytes: int | None = 8 * GIB
    file_bytes: int | None = 2 * GIB
    open_files: int | None = 8192
    cpu_s: int | None = None
    scratch_bytes: int = GIB
    free_disk_bytes: int = GIB
    free_disk_files: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link to create in the sandbox."""

    path: Path
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFile:
    """A small file to create in the sandbox."""

    path: Path
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """View and permissions of a sandbox: paths are absolute and resolved, and those not listed do not exist in it.

    `writable` are the folders that commands may change. Inside them, `pinned` folders can be neither renamed nor
    removed, `protected` paths cannot be changed and `hidden_*` paths cannot be read, except for `outputs`, the full
    outputs of earlier commands; `repositories` are existing git repositories. `home` is empty at first. If it is
    in a writable folder, it is one of the `frozen` folders: nothing can be created in them, or in a folder around them,
    and only the `thawed` paths in them can be changed. `machine_files` are kernel files with information
    about the whole machine.
    The socket of the proxy is created in `proxy_dir` when hosts are allowed; `relay` is the command that connects
    the sandbox to it.
    """

    writable: tuple[Path, ...]
    home: Path
    readable: tuple[Path, ...] = ()
    links: tuple[Link, ...] = ()
    generated_files: tuple[GeneratedFile, ...] = ()
    toolchains: tuple[Path, ...] = ()
    machine_files: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    repositories: tuple[Path, ...] = ()
    frozen: tuple[Path, ...] = ()
    thawed: tuple[Path, ...] = ()
    hidden_folders: tuple[Path, ...] = ()
    hidden_files: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    proxy_dir: Path | None = None
    proxy_socket: Path | None = None
    proxy_env: Mapping[str, str] = field(default_factory=dict)
    relay: tuple[str, ...] = ()
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    environment: Mapping[str, str] = field(default_factory=dict)
    uid: int = 1000
    gid: int = 1000

    def is_visible(self, path: Path) -> bool:
        """Whether a path exists in the sandbox, so that a command can start there."""
        if path in self.writable:
            # Nearly always, and comparing paths is much faster.
            return True
        return any(path.is_relative_to(root) for root in (*self.writable, *self.toolchains, *self.readable))

    def build_environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command."""
        return {**self.environment, **self.proxy_env, **extra}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDescription:
    """The protections of a sandbox and their limits."""

    name: str
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]


class Sandbox(Protocol):
    """Starts commands that can do no more than its policy allows."""

    @property
    def policy(self) -> SandboxPolicy:
        """The policy of all commands."""
        ...

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> RunningProcess:
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        ...

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        ...

    def close(self) -> None:
        """End running commands and remove temporary files."""
        ...


def check_request(request: CommandRequest, policy: SandboxPolicy, path: str) -> None:
    """Raise the OSError that starting the command without a sandbox would have raised."""
    if not request.cwd.is_dir():
        problem = errno.ENOTDIR if request.cwd.exists() else errno.ENOENT
        raise OSError(problem, os.strerror(problem), str(request.cwd))
    if not policy.is_visible(request.cwd):
        raise PermissionError(errno.EACCES, "the folder is not visible in the sandbox", str(request.cwd))
    if any("\0" in word for word in request.argv):
        raise OSError(errno.EINVAL, "a command cannot contain a null byte")
    program = request.argv[0]
    found = (request.cwd / program).exists() if os.sep in program else find_on_path(program, path.split(os.pathsep))
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def find_program(name: str) -> Path | None:
    """Return the path of a system program; PATH is not used, because a command may have changed its folders."""
    folders = ("/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/wrappers/bin", "/run/current-system/sw/bin")
    return next((Path(folder, name) for folder in folders if os.access(Path(folder, name), os.X_OK)), None)
