"""From a confinement to the words of a bubblewrap command line; nothing here touches the machine."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent.backends.sandbox.types import MIB, PROXY_SOCKET, SandboxPolicy
from tooling.contract.fast_dataclass import dataclass

HOST_NAME = "windlass"
TEMPORARY = Path("/tmp")
SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_BYTES = 256 * MIB

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BwrapFds:
    """Numbers of the open files that bubblewrap reads and writes; it closes them before the command starts.

    `status` gets the box's first process and its exit, `gate` holds it back until something can be read, `documents`
    stand in the order of the confinement's.
    """

    seccomp: int
    status: int
    gate: int
    generated_files: tuple[int, ...] = ()

    @property
    def all_fds(self) -> tuple[int, ...]:
        """Return all of them."""
        return (self.seccomp, self.status, self.gate, *self.generated_files)


def bwrap_argv(
    confinement: SandboxPolicy,
    argv: Sequence[str],
    cwd: Path,
    *,
    program: Path,
    descriptors: BwrapFds,
    setenv: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line that runs `argv` in the box.

    The environment is no part of it but for `setenv`: bubblewrap hands its own on, and words can be seen in process
    lists.
    """
    words = [str(program), *_NAMESPACES]
    words += ["--uid", str(confinement.uid), "--gid", str(confinement.gid), "--hostname", HOST_NAME]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += _system_mounts(confinement, descriptors)
    words += _mounts(confinement)
    if confinement.proxy_socket is not None:
        words += ["--bind", str(confinement.proxy_socket), str(PROXY_SOCKET)]
    # To the kernel a box made by root is root's: it could write the settings of the whole machine in /proc/sys. Mount
    # points are made in /dev and in the root while mounting, so these become read-only last.
    words += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(cwd)]
    for name, value in (setenv or {}).items():
        words += ["--setenv", name, value]
    words += ["--seccomp", str(descriptors.seccomp)]
    words += ["--json-status-fd", str(descriptors.status), "--block-fd", str(descriptors.gate)]
    return [*words, "--", *confinement.command_prefix, *argv]


def _system_mounts(confinement: SandboxPolicy, descriptors: BwrapFds) -> Iterator[str]:
    for path in confinement.readable:
        yield from ("--ro-bind", str(path), str(path))
    for link in confinement.links:
        yield from ("--symlink", link.target, str(link.path))
    for document, number in zip(confinement.generated_files, descriptors.generated_files, strict=True):
        yield from ("--perms", "0444", "--file", str(number), str(document.path))
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _tmpfs(SHARED_MEMORY, min(SHARED_MEMORY_BYTES, confinement.limits.scratch_bytes))


def _mounts(confinement: SandboxPolicy) -> Iterator[str]:
    """Mount from the wide to the narrow, whatever the kind: what comes later lies on top of what it is inside of."""
    scratch = confinement.limits.scratch_bytes
    places = [(TEMPORARY, _tmpfs(TEMPORARY, scratch)), (confinement.home, _tmpfs(confinement.home, scratch))]
    places += [(path, _bind("--ro-bind", path)) for path in confinement.toolchains]
    places += [(path, _bind("--bind", path)) for path in (*confinement.writable, *confinement.pinned)]
    places += [(path, _bind("--ro-bind", path)) for path in confinement.protected]
    places += [(path, _empty_folder(path)) for path in confinement.hidden_folders]
    places += [(path, ("--ro-bind", "/dev/null", str(path))) for path in confinement.hidden_files]
    # A stable order: for the same path the later kind wins, so a workspace that is the home is the workspace.
    for _, words in sorted(places, key=lambda place: place[0].parts):
        yield from words


def _bind(option: str, path: Path) -> tuple[str, ...]:
    return (option, str(path), str(path))


def _empty_folder(path: Path) -> tuple[str, ...]:
    return ("--perms", "0500", "--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path))


def _tmpfs(path: Path, size: int) -> tuple[str, ...]:
    mode = "1777" if path in (TEMPORARY, SHARED_MEMORY) else "0700"
    return ("--perms", mode, "--size", str(size), "--tmpfs", str(path))
