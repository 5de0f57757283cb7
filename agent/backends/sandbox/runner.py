"""Runs commands in a sandbox, and chooses the sandbox."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.backends.process.run_process import GRACE_S, run_process
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.bubblewrap.world_sandbox import WorldSandbox
from agent.backends.sandbox.cgroup import find_cgroup_parent
from agent.backends.sandbox.detect import build_policy
from agent.backends.sandbox.git.guard import GitGuard
from agent.backends.sandbox.git.protection import GitPaths, find_git_paths
from agent.backends.sandbox.home_folder import HomeFolders, is_changeable
from agent.backends.sandbox.seccomp import UnknownArchitecture
from agent.backends.sandbox.types import MIB, ResourceLimits, Sandbox, SandboxDescription, SandboxPolicy, find_program
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandOutput, CommandRequest

DISK_POLL_S = 0.25
# If the disk was nearly full before, a command is stopped only after it has used this much itself.
_MIN_GROWTH = (256 * MIB, 5_000)
_STOPPED_EXIT_CODE = 1
_CHECK_DELAY_S = 0.02


class DiskWatch:
    """Checks regularly how much space, and for how many files, is left on the disks of folders."""

    def __init__(self, folders: Iterable[Path], min_free_bytes: int, min_free_files: int = 0) -> None:
        self._folders = tuple(folders)
        self._floors = (min_free_bytes, min_free_files)
        self._free_at_start = [_free(folder) for folder in self._folders]
        self._next_check_at = time.monotonic() + DISK_POLL_S
        self._reason = ""

    @property
    def was_full(self) -> bool:
        """Whether the disk was found full."""
        return bool(self._reason)

    def is_full(self) -> bool:
        """Whether the space has run out since the start."""
        now = time.monotonic()
        if now < self._next_check_at or self.was_full:
            return self.was_full
        self._next_check_at = now + DISK_POLL_S
        for folder, before in zip(self._folders, self._free_at_start, strict=True):
            free = _free(folder)
            is_short = [
                left < floor and start - left > growth
                for left, floor, start, growth in zip(free, self._floors, before, _MIN_GROWTH, strict=True)
            ]
            if any(is_short):
                self._reason = disk_full_reason(self._floors[0]) if is_short[0] else no_files_reason(self._floors[1])
        return self.was_full

    def add_reason(self, output: CommandOutput) -> CommandOutput:
        """Return the output of a stopped command with the reason appended."""
        reason = self._reason.encode()
        return replace(output, exit_code=_STOPPED_EXIT_CODE, cancelled=False, output=output.output + reason)


def disk_full_reason(min_free_bytes: int) -> str:
    """Return the text appended to the output of a command that filled the disk."""
    return f"\nwindlass: stopped: less than {min_free_bytes // MIB} MiB of disk space left\n"


def no_files_reason(min_free_files: int) -> str:
    """Return the text appended to the output of a command that created too many files."""
    return f"\nwindlass: stopped: the disk has room for fewer than {min_free_files:,} more files\n"


def _free(folder: Path) -> tuple[int, int]:
    """Return the free bytes and the number of free inodes of a disk."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0, 0
    # Some file systems have no inode limit.
    files = found.f_favail if found.f_files else sys.maxsize
    return found.f_bavail * found.f_frsize, files


_INSTALL_COMMANDS = {
    "apt": "apt install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "apk": "apk add bubblewrap",
    "zypper": "zypper install bubblewrap",
}
PLANTED = "a command left code for git to run; it was taken back:"
NOT_TAKEN_BACK = "a command left code for git to run, and it could not be taken back:"
TOO_MANY_FOLDERS = "not all folders could be searched for code that git would run: too many, or closed"
ALLOWED_HOSTS_NEED_BUBBLEWRAP = "allowed hosts need bubblewrap"
PROTECTS_LESS = "commands run under Landlock, which protects less (see agent doctor)"


def install_command() -> str:
    """Return how to install bubblewrap with the package manager of this machine."""
    return next((line for name, line in _INSTALL_COMMANDS.items() if find_program(name)), "install bubblewrap")


def install_hint() -> str:
    """Return a hint for a user without a working sandbox."""
    return (
        f"install bubblewrap 0.8 or newer ({install_command()}), or use --backend host, which asks before every command"
    )


def missing_bubblewrap_warning() -> str:
    """Return the warning of a run whose commands are sandboxed by Landlock alone."""
    return f"bubblewrap is not installed; {PROTECTS_LESS}. Install it: {install_command()}"


class SandboxCommandRunner:
    """Runs every command in a sandbox."""

    def __init__(
        self, sandbox: Sandbox, *, grace_s: float = GRACE_S, on_planted: Callable[[str], None] = lambda what: None
    ) -> None:
        self._sandbox = sandbox
        self._grace_s = grace_s
        self._on_planted = on_planted
        self._guard = _git_guard(sandbox)
        self._learning: asyncio.Future[None] | None = None
        self._checking: asyncio.Future[None] | None = None
        self._is_check_wanted = False
        self._has_run = False

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in use."""
        return self._sandbox

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run until the command exits, times out or is cancelled; no process it started survives the return."""
        policy = self._sandbox.policy
        disk = DiskWatch(policy.writable, policy.limits.free_disk_bytes, policy.limits.free_disk_files)
        check = request.cancel_check
        if system := find_program(request.argv[0]) if request.only_reads else None:
            # One in the workspace, which may be in PATH, could do anything.
            request = replace(request, argv=(str(system), *request.argv[1:]))
        watched = replace(request, cancel_check=lambda: (check is not None and check()) or disk.is_full())
        if system is None:
            if self._learning is None:
                self._learning = asyncio.ensure_future(asyncio.to_thread(self._guard.learn))
            await asyncio.shield(self._learning)
            self._has_run = True
        try:
            output = await run_process(watched, self._sandbox.launch, grace_s=self._grace_s)
        finally:
            if system is None:
                self._check_repositories()
        return disk.add_reason(output) if disk.was_full and output.cancelled else output

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        return self._sandbox.describe()

    def open_network(self, socket: Path) -> None:
        """Let later commands reach the egress proxy on this socket. Raises SandboxError."""
        if not isinstance(self._sandbox, WorldSandbox):
            raise SandboxError(ALLOWED_HOSTS_NEED_BUBBLEWRAP, hint=install_hint())
        self._sandbox.open_network(socket)

    def protect_new_repositories(self) -> None:
        """Protect the repositories that commands have created, unless a process is running that could interfere."""
        sandbox = self._sandbox
        if self._has_run:
            self._report(self._guard.check(is_deep=True))
        self._has_run = False
        if isinstance(sandbox, WorldSandbox) and sandbox.is_idle:
            policy = sandbox.policy
            before = GitPaths(pinned=policy.pinned, protected=policy.protected)
            git = find_git_paths(policy.writable, policy.home, before=before)
            homes = HomeFolders(frozen=policy.frozen, thawed=policy.thawed)
            # A pinned folder is writable, which those of a home folder must not become.
            pinned = tuple(path for path in git.pinned if is_changeable(path, homes))
            sandbox.policy = replace(policy, pinned=pinned, protected=git.protected, repositories=git.stores)
            self._guard, self._learning = _git_guard(sandbox), None

    async def settle(self) -> None:
        """Wait until files that commands planted for git are reverted."""
        while self._checking is not None and not self._checking.done():
            await asyncio.wait({self._checking})

    def _check_repositories(self) -> None:
        """Look for planted code while the model reads the result; a request during a check starts another after it."""

        async def check() -> None:
            while self._is_check_wanted:
                # The next request is sent first; commands that follow each other quickly share a check.
                await asyncio.sleep(_CHECK_DELAY_S)
                self._is_check_wanted = False
                self._report(await asyncio.to_thread(self._guard.check))

        self._is_check_wanted = True
        if self._checking is None or self._checking.done():
            self._checking = asyncio.ensure_future(check())

    def _report(self, planted: Iterable[str]) -> None:
        for what in planted:
            self._on_planted(f"{PLANTED} {what}")
        for what in self._guard.left:
            self._on_planted(f"{NOT_TAKEN_BACK} {what}")
        if not self._guard.is_complete:
            self._on_planted(TOO_MANY_FOLDERS)

    async def stop(self) -> None:
        """End all commands and background processes, and wait for their end; call this before `close`."""
        if isinstance(self._sandbox, WorldSandbox):
            await self._sandbox.stop()
        await self.settle()
        if self._has_run:
            self._has_run = False
            self._report(await asyncio.to_thread(self._guard.check, is_deep=True))

    def close(self) -> None:
        """End running commands and remove temporary files."""
        self._sandbox.close()


def build_sandbox_runner(
    *,
    workspace: Path,
    environ: Mapping[str, str],
    extra_dirs: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    limits: ResourceLimits | None = None,
    outputs: Iterable[Path] = (),
    proxy_dir: Path | None = None,
    proxy_socket: Path | None = None,
    grace_s: float = GRACE_S,
    on_planted: Callable[[str], None] = lambda what: None,
    sandbox_type: str = "auto",
) -> SandboxCommandRunner:
    """Return a runner whose commands may change these folders only. Raises SandboxError.

    `hidden` are folders of this program (data, configuration) that are hidden even inside a writable folder, except
    for `outputs`. A socket that is created in `proxy_dir` later can be opened without starting the sandbox again.
    `on_planted` is called with code for git that was reverted.
    """
    policy = build_policy(workspace=workspace, environ=environ, extra_dirs=extra_dirs, hidden=hidden, limits=limits)
    policy = _with_interpreter(
        replace(policy, outputs=tuple(path for path in outputs if path.is_dir()), proxy_dir=proxy_dir)
    )
    runner = SandboxCommandRunner(choose_sandbox(policy, sandbox_type), grace_s=grace_s, on_planted=on_planted)
    if proxy_socket is not None:
        runner.open_network(proxy_socket)
    return runner


def _git_guard(sandbox: Sandbox) -> GitGuard:
    policy = sandbox.policy
    mounted = policy.protected if isinstance(sandbox, WorldSandbox) else ()
    return GitGuard(policy.writable, policy.repositories, mounted, policy.home)


def choose_sandbox(policy: SandboxPolicy, sandbox_type: str) -> Sandbox:
    """Return the chosen sandbox, or the best of this machine. Raises SandboxError if there is none."""
    if sys.platform == "darwin":
        from agent.backends.sandbox.seatbelt import SeatbeltSandbox

        return SeatbeltSandbox(policy)
    program = find_program("bwrap")
    try:
        if sandbox_type == "landlock" or (program is None and sandbox_type == "auto"):
            return _build_landlock(policy)
        if program is None:
            raise SandboxError("bubblewrap is not installed", hint=install_hint())
        return BubblewrapSandbox(policy, program=program, cgroup_parent=find_cgroup_parent())
    except UnknownArchitecture as problem:
        raise SandboxError(f"there is no sandbox for this machine: {problem}", hint=install_hint()) from problem


def _with_interpreter(policy: SandboxPolicy) -> SandboxPolicy:
    """Return a policy that shows our interpreter, which starts the commands and the relay."""
    interpreter = Path(sys.base_prefix)
    return policy if policy.is_visible(interpreter) else replace(policy, toolchains=(*policy.toolchains, interpreter))


def _build_landlock(policy: SandboxPolicy) -> Sandbox:
    from agent.backends.sandbox.landlock.kernel import landlock_version
    from agent.backends.sandbox.landlock.landlock_sandbox import LandlockSandbox

    if sys.platform != "linux" or landlock_version() < 1:
        raise SandboxError("there is no sandbox on this machine: bubblewrap is missing", hint=install_hint())
    return LandlockSandbox(policy, cgroup_parent=find_cgroup_parent())
