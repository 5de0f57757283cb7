"""Runs commands in a sandbox, and chooses the sandbox."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.backends.egress.relay import proxy_environment, relay_argv
from agent.backends.process.run_process import GRACE_S, run_process
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.cgroup import find_cgroup_parent
from agent.backends.sandbox.detect import build_policy
from agent.backends.sandbox.git.guard import GitGuard
from agent.backends.sandbox.git.protection import find_git_paths
from agent.backends.sandbox.landlock.landlock_sandbox import LandlockSandbox
from agent.backends.sandbox.seatbelt import SeatbeltSandbox
from agent.backends.sandbox.seccomp import UnknownArchitecture
from agent.backends.sandbox.types import MIB, ResourceLimits, Sandbox, SandboxDescription, SandboxPolicy, find_program
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandOutput, CommandRequest

DISK_POLL_S = 0.25
# If the disk was nearly full before, a command is stopped only after it has used this much itself.
_MIN_GROWTH_BYTES = 256 * MIB
_STOPPED_EXIT_CODE = 1


class DiskWatch:
    """Checks the free disk space of folders from time to time."""

    def __init__(self, folders: Iterable[Path], min_free_bytes: int) -> None:
        self._folders = tuple(folders)
        self._min_free_bytes = min_free_bytes
        self._free_at_start = [_free_bytes(folder) for folder in self._folders]
        self._next_check_at = time.monotonic() + DISK_POLL_S
        self.was_full = False

    def is_full(self) -> bool:
        """Whether the space has run out since the start."""
        now = time.monotonic()
        if now < self._next_check_at or self.was_full:
            return self.was_full
        self._next_check_at = now + DISK_POLL_S
        for folder, before in zip(self._folders, self._free_at_start, strict=True):
            free = _free_bytes(folder)
            self.was_full |= free < self._min_free_bytes and before - free > _MIN_GROWTH_BYTES
        return self.was_full

    def add_reason(self, output: CommandOutput) -> CommandOutput:
        """Return the output of a stopped command with the reason appended."""
        reason = disk_full_reason(self._min_free_bytes).encode()
        return replace(output, exit_code=_STOPPED_EXIT_CODE, cancelled=False, output=output.output + reason)


def disk_full_reason(min_free_bytes: int) -> str:
    """Return what is appended to the output of a command that filled the disk."""
    return f"\nwindlass: stopped: less than {min_free_bytes // MIB} MiB of disk space left\n"


def _free_bytes(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


_INSTALL_COMMANDS = {
    "apt": "apt install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "apk": "apk add bubblewrap",
    "zypper": "zypper install bubblewrap",
}
PLANTED = "a command left code for git to run; it was taken back:"
ALLOWED_HOSTS_NEED_BUBBLEWRAP = "allowed hosts need bubblewrap"
PROTECTS_LESS = "commands run under Landlock, which protects less (see agent doctor)"


def install_command() -> str:
    """Return how to install bubblewrap with the package manager of this machine."""
    return next((line for name, line in _INSTALL_COMMANDS.items() if find_program(name)), "install bubblewrap")


def install_hint() -> str:
    """Return what a user without a working sandbox can do."""
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
        self._checking: asyncio.Future[None] | None = None
        self._is_check_wanted = False

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in use."""
        return self._sandbox

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run until the command exits, times out or is cancelled; no process it started survives the return."""
        policy = self._sandbox.policy
        disk = DiskWatch(policy.writable, policy.limits.free_disk_bytes)
        check = request.cancel_check
        watched = replace(request, cancel_check=lambda: (check is not None and check()) or disk.is_full())
        try:
            output = await run_process(watched, self._sandbox.launch, grace_s=self._grace_s)
        finally:
            self._check_repositories()
        return disk.add_reason(output) if disk.was_full and output.cancelled else output

    def describe(self) -> SandboxDescription:
        """Return what the sandbox protects and what it does not."""
        return self._sandbox.describe()

    def open_network(self, socket: Path) -> None:
        """Let later commands reach the egress proxy on this socket. Raises SandboxError."""
        if not isinstance(self._sandbox, BubblewrapSandbox):
            raise SandboxError(ALLOWED_HOSTS_NEED_BUBBLEWRAP, hint=install_hint())
        self._sandbox.policy = with_proxy(self._sandbox.policy, socket)

    def protect_new_repositories(self) -> None:
        """Protect the repositories that commands have created, unless a process is running that could interfere."""
        sandbox = self._sandbox
        self._report(self._guard.check())
        if isinstance(sandbox, BubblewrapSandbox) and sandbox.is_idle:
            git = find_git_paths(sandbox.policy.writable)
            pinned = tuple(dict.fromkeys((*sandbox.policy.pinned, *git.pinned)))
            protected = tuple(dict.fromkeys((*sandbox.policy.protected, *git.protected)))
            sandbox.policy = replace(sandbox.policy, pinned=pinned, protected=protected, repositories=git.stores)
            self._guard = _git_guard(sandbox)

    async def settle(self) -> None:
        """Wait until what commands planted for git is taken back."""
        while self._checking is not None and not self._checking.done():
            await asyncio.wait({self._checking})

    def _check_repositories(self) -> None:
        """Look for planted code while the model reads the result; a check that is under way is followed by another."""

        async def check() -> None:
            while self._is_check_wanted:
                self._is_check_wanted = False
                self._report(await asyncio.to_thread(self._guard.check))

        self._is_check_wanted = True
        if self._checking is None or self._checking.done():
            self._checking = asyncio.ensure_future(check())

    def _report(self, planted: Iterable[str]) -> None:
        for what in planted:
            self._on_planted(f"{PLANTED} {what}")

    async def stop(self) -> None:
        """End all commands and background processes, and wait for their end; call this before `close`."""
        if isinstance(self._sandbox, BubblewrapSandbox):
            await self._sandbox.stop()
        if self._checking is not None:
            self._check_repositories()
            await self.settle()

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
    `on_planted` hears of code for git that was taken back.
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
    mounted = policy.protected if isinstance(sandbox, BubblewrapSandbox) else ()
    return GitGuard(policy.writable, policy.repositories, mounted)


def choose_sandbox(policy: SandboxPolicy, sandbox_type: str) -> Sandbox:
    """Return the sandbox that was chosen, or the best of this machine. Raises SandboxError if there is none."""
    if sys.platform == "darwin":
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


def with_proxy(policy: SandboxPolicy, socket: Path) -> SandboxPolicy:
    """Return a policy whose commands reach the proxy through a relay in the sandbox."""
    proxy_dir = policy.proxy_dir if socket.parent == policy.proxy_dir else None
    return replace(
        policy, proxy_dir=proxy_dir, proxy_socket=socket, proxy_env=proxy_environment(), relay=relay_argv(())
    )


def _with_interpreter(policy: SandboxPolicy) -> SandboxPolicy:
    """Return a policy that shows our interpreter, which starts the commands and the relay."""
    interpreter = Path(sys.base_prefix)
    return policy if policy.is_visible(interpreter) else replace(policy, toolchains=(*policy.toolchains, interpreter))


def _build_landlock(policy: SandboxPolicy) -> LandlockSandbox:
    # Imports ctypes, which a machine with bubblewrap does not need before its first command.
    from agent.backends.sandbox.landlock.kernel import landlock_version

    if sys.platform != "linux" or landlock_version() < 1:
        raise SandboxError("there is no sandbox on this machine: bubblewrap is missing", hint=install_hint())
    return LandlockSandbox(policy, cgroup_parent=find_cgroup_parent())
