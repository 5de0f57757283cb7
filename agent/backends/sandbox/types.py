"""What every kind of box offers to the runner, and the checks they share."""

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import RunningProcess
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB
# Where the socket of the egress proxy appears inside a box.
PROXY_SOCKET = Path("/run/windlass/proxy.sock")


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a table that is written as text."""
    return tuple(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """How much one command may use; None leaves a thing unlimited. Its time is limited by the request."""

    processes: int | None = 1024
    memory_bytes: int | None = 8 * GIB
    file_bytes: int | None = 2 * GIB
    open_files: int | None = 8192
    cpu_s: int | None = None
    scratch_bytes: int = GIB
    free_disk_bytes: int = GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A symbolic link to make in the box."""

    path: Path
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFile:
    """A small file to make in the box."""

    path: Path
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """One box: all paths are absolute and resolved, all that is not named here does not exist in it.

    `writable` are the folders commands may change. `pinned` are folders inside them that can be neither renamed nor
    removed, `protected` paths inside them that cannot be changed, `hidden_…` ones that cannot be read. `home` is an
    empty folder that lasts as long as one command. `entry` is put before the words of every command.
    """

    writable: tuple[Path, ...]
    home: Path
    readable: tuple[Path, ...] = ()
    links: tuple[Link, ...] = ()
    generated_files: tuple[GeneratedFile, ...] = ()
    toolchains: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    hidden_folders: tuple[Path, ...] = ()
    hidden_files: tuple[Path, ...] = ()
    proxy_socket: Path | None = None
    proxy_env: Mapping[str, str] = field(default_factory=dict)
    command_prefix: tuple[str, ...] = ()
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    environment: Mapping[str, str] = field(default_factory=dict)
    uid: int = 1000
    gid: int = 1000

    def is_visible(self, path: Path) -> bool:
        """Say whether a command may start in this folder."""
        return any(path.is_relative_to(root) for root in (*self.writable, *self.toolchains, *self.readable))

    def build_environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return what a command's environment holds."""
        return {**self.environment, **self.proxy_env, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDescription:
    """What a box does and, said aloud, what it does not."""

    name: str
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]


class Sandbox(Protocol):
    """Starts commands so that they can do no more than a confinement says."""

    @property
    def policy(self) -> SandboxPolicy:
        """Return what commands are confined to."""
        ...

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> RunningProcess:
        """Start a command. Raises OSError when it cannot be started in this box."""
        ...

    def describe(self) -> SandboxDescription:
        """Return what the box covers and what it does not."""
        ...

    def close(self) -> None:
        """End what still runs, and remove what was made for the box."""
        ...


def check_request(request: CommandRequest, confinement: SandboxPolicy, path: str) -> None:
    """Raise the OSError that starting the command without a box would have raised."""
    if not request.cwd.is_dir():
        problem = errno.ENOTDIR if request.cwd.exists() else errno.ENOENT
        raise OSError(problem, os.strerror(problem), str(request.cwd))
    if not confinement.is_visible(request.cwd):
        raise PermissionError(errno.EACCES, "the folder is not visible in the box", str(request.cwd))
    if any("\0" in word for word in request.argv):
        raise OSError(errno.EINVAL, "a command cannot hold a null byte")
    program = request.argv[0]
    found = (request.cwd / program).exists() if os.sep in program else shutil.which(program, path=path)
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def find_program(name: str) -> Path | None:
    """Return the absolute path of a system program; the PATH is not asked, for a command could have changed it."""
    places = ("/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/wrappers/bin", "/run/current-system/sw/bin")
    return next((Path(place, name) for place in places if os.access(Path(place, name), os.X_OK)), None)
