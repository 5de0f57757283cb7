"""Builds the options of bubblewrap from a policy, as a pure function."""

from collections.abc import Iterator
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
# Path of the starter, in the sandbox and on the host.
STARTER = Path("/.windlass/starter.py")
STARTER_SOURCE = Path(__file__).with_name("starter_main.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class BwrapFds:
    """File descriptors that bubblewrap reads and writes; it closes them before the command starts.

    `status` receives the process id and exit code of the first process, `gate` blocks it until a byte can be read, and
    `generated_files` are in the order of the policy.
    """

    seccomp: int
    status: int
    gate: int
    generated_files: tuple[int, ...] = ()


def bwrap_options(policy: SandboxPolicy, fds: BwrapFds) -> list[str]:
    """Return the options of a sandbox. They are passed in a file: paths can be too long for a command line."""
    words = [*_NAMESPACES]
    words += ["--uid", str(policy.uid), "--gid", str(policy.gid), "--hostname", HOST_NAME, "--as-pid-1"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += _system_mounts(policy, fds)
    words += _mounts(policy)
    words += ["--ro-bind", str(STARTER_SOURCE), str(STARTER)]
    if policy.proxy_dir is not None:
        words += ["--ro-bind", str(policy.proxy_dir), str(PROXY_SOCKET.parent)]
    elif policy.proxy_socket is not None:
        words += ["--bind", str(policy.proxy_socket), str(PROXY_SOCKET)]
    # A sandbox started by root could write the settings of the machine in /proc/sys. Mount points are created in /dev
    # and in the root folder while mounting, so these become read-only last.
    words += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    words += ["--seccomp", str(fds.seccomp)]
    words += ["--json-status-fd", str(fds.status), "--block-fd", str(fds.gate)]
    return words


def _system_mounts(policy: SandboxPolicy, fds: BwrapFds) -> Iterator[str]:
    for path in policy.readable:
        yield from ("--ro-bind", str(path), str(path))
    for link in policy.links:
        yield from ("--symlink", link.target, str(link.path))
    for file, fd in zip(policy.generated_files, fds.generated_files, strict=True):
        yield from ("--perms", "0444", "--file", str(fd), str(file.path))
    yield from ("--proc", "/proc", "--dev", "/dev")
    # They describe the whole machine and are readable for their owner.
    for path in policy.machine_files:
        yield from ("--ro-bind", "/dev/null", str(path))
    yield from _tmpfs(SHARED_MEMORY, min(SHARED_MEMORY_BYTES, policy.limits.scratch_bytes))


def _mounts(policy: SandboxPolicy) -> Iterator[str]:
    """Yield the mounts sorted by path, because a later mount is on top of an earlier one that contains it."""
    scratch = policy.limits.scratch_bytes
    mounts = [(TEMPORARY, _tmpfs(TEMPORARY, scratch)), (policy.home, _tmpfs(policy.home, scratch))]
    mounts += [(path, _bind("--ro-bind", path)) for path in policy.toolchains]
    mounts += [(path, _bind("--bind", path)) for path in (*policy.writable, *policy.pinned)]
    mounts += [(path, _bind("--ro-bind", path)) for path in policy.protected]
    # Below a writable folder, the home folder of the sandbox is there instead of the user's.
    is_shown = policy.home in policy.writable
    homes = [("--ro-bind", path) for path in policy.frozen] + [("--bind", path) for path in policy.thawed]
    mounts += [(path, _bind(how, path)) for how, path in homes if is_shown or not path.is_relative_to(policy.home)]
    mounts += [(path, _empty_folder(path)) for path in policy.hidden_folders]
    mounts += [(path, ("--ro-bind", "/dev/null", str(path))) for path in policy.hidden_files]
    mounts += [(path, _bind("--ro-bind", path)) for path in policy.outputs]
    # The sort is stable: for the same path the later entry wins, so a home that is the workspace is writable.
    for _, words in sorted(mounts, key=lambda mount: mount[0].parts):
        yield from words
    # Only now, because the outputs may be in one of them.
    for path in policy.hidden_folders:
        yield from ("--remount-ro", str(path))


def _bind(option: str, path: Path) -> tuple[str, ...]:
    return (option, str(path), str(path))


def _empty_folder(path: Path) -> tuple[str, ...]:
    return ("--perms", "0500", "--size", "4096", "--tmpfs", str(path))


def _tmpfs(path: Path, size: int) -> tuple[str, ...]:
    mode = "1777" if path in (TEMPORARY, SHARED_MEMORY) else "0700"
    return ("--perms", mode, "--size", str(size), "--tmpfs", str(path))
