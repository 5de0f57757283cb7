"""Commands in a box: the runner, the executor on top of it, and the choice of the box."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.backends.egress.relay import proxy_environment, relay_argv
from agent.backends.host import GRACE_S, SandboxExecutor, build_tool_executor
from agent.backends.process.run_process import run_process
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.cgroup import find_cgroup_parent
from agent.backends.sandbox.detect import build_policy
from agent.backends.sandbox.landlock.landlock_sandbox import LandlockSandbox
from agent.backends.sandbox.seatbelt import SeatbeltSandbox
from agent.backends.sandbox.seccomp import UnknownArchitecture
from agent.backends.sandbox.types import MIB, ResourceLimits, Sandbox, SandboxDescription, SandboxPolicy, find_program
from agent.vocabulary.errors import SandboxError
from tooling.contract.action import Approver
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.question import Asker
from tooling.output import OUTPUT_TRIM_LEN
from tooling.safety.action_judge import ActionJudge

DISK_POLL_S = 0.25
# On a disk that was full before, a command is not to blame until it has taken this much itself.
_MIN_GROWTH_BYTES = 256 * MIB
_STOPPED_EXIT_CODE = 1


class DiskWatch:
    """Looks at the free space of folders from time to time; `floor` is what must stay free."""

    def __init__(self, folders: Iterable[Path], floor: int) -> None:
        self._folders = tuple(folders)
        self._min_free_bytes = floor
        self._free_at_start = [_free_bytes(folder) for folder in self._folders]
        self._next_check_at = time.monotonic() + DISK_POLL_S
        self.was_full = False

    def is_full(self) -> bool:
        """Say whether the space has run out since the start."""
        now = time.monotonic()
        if now < self._next_check_at or self.was_full:
            return self.was_full
        self._next_check_at = now + DISK_POLL_S
        for folder, before in zip(self._folders, self._free_at_start, strict=True):
            free = _free_bytes(folder)
            self.was_full |= free < self._min_free_bytes and before - free > _MIN_GROWTH_BYTES
        return self.was_full

    def add_reason(self, output: CommandOutput) -> CommandOutput:
        """Return the output of a command that was stopped for it, with the reason at its end."""
        reason = f"\nwindlass: stopped, because less than {self._min_free_bytes // MIB} MiB of the disk are free\n"
        return replace(output, exit_code=_STOPPED_EXIT_CODE, cancelled=False, output=output.output + reason.encode())


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
ALLOWED_HOSTS_NEED_BUBBLEWRAP = "allowed hosts need bubblewrap"
PROTECTS_LESS = "commands run under Landlock, which protects less (see agent doctor)"


def install_command() -> str:
    """Return how to install bubblewrap with the package manager of this machine."""
    return next((line for name, line in _INSTALL_COMMANDS.items() if find_program(name)), "install bubblewrap")


def install_hint() -> str:
    """Return what a user without a working sandbox can do."""
    command = install_command()
    example = f" (`{command}`)" if command in _INSTALL_COMMANDS.values() else ""
    return f"install bubblewrap 0.8 or newer{example}, or use --backend host, which asks before every command"


def missing_bubblewrap_warning() -> str:
    """Return the warning of a run whose commands are sandboxed by Landlock alone."""
    return f"bubblewrap is not installed; {PROTECTS_LESS}. Install it: {install_command()}"


def failed_bubblewrap_warning(reason: str) -> str:
    """Return the warning of a run that uses Landlock because bubblewrap does not start."""
    return f"{reason}; {PROTECTS_LESS}"


class SandboxCommandRunner:
    """Runs processes in a box; a request has no way around it."""

    def __init__(self, sandbox: Sandbox, *, grace_s: float = GRACE_S) -> None:
        self._sandbox = sandbox
        self._grace_s = grace_s

    @property
    def sandbox(self) -> Sandbox:
        """Return the box in use."""
        return self._sandbox

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run to the end, the time limit or cancellation; no process of it survives the return."""
        confinement = self._sandbox.policy
        disk = DiskWatch(confinement.writable, confinement.limits.free_disk_bytes)
        asked = request.cancel_check
        watched = replace(request, cancel_check=lambda: (asked is not None and asked()) or disk.is_full())
        output = await run_process(watched, self._sandbox.launch, grace_s=self._grace_s)
        return disk.add_reason(output) if disk.was_full and output.cancelled else output

    def prewarm(self, cwd: Path) -> None:
        """Build a box ahead for the next command, where the kind of box gains by it."""
        if isinstance(self._sandbox, BubblewrapSandbox):
            self._sandbox.prewarm(cwd)

    def describe(self) -> SandboxDescription:
        """Return what the box covers and what it does not."""
        return self._sandbox.describe()

    def open_network(self, socket: Path) -> None:
        """Let the commands from now on reach the egress proxy that listens there. Raises SandboxError."""
        if not isinstance(self._sandbox, BubblewrapSandbox):
            raise SandboxError(ALLOWED_HOSTS_NEED_BUBBLEWRAP, hint=install_hint())
        self._sandbox.policy = with_proxy(self._sandbox.policy, socket)

    def use_landlock(self) -> None:
        """Use Landlock instead of a bubblewrap that does not work here. Raises SandboxError."""
        if not isinstance(self._sandbox, BubblewrapSandbox):
            raise SandboxError("there is no other box on this machine", hint=install_hint())
        fallback = _build_landlock(self._sandbox.policy)
        self._sandbox.close()
        self._sandbox = fallback

    async def discard_prewarmed(self) -> None:
        """End the box that was built ahead; whoever prepares does this before closing."""
        if isinstance(self._sandbox, BubblewrapSandbox):
            await self._sandbox.discard_prewarmed()

    def close(self) -> None:
        """End what still runs, and remove what was made for the box."""
        self._sandbox.close()


def build_sandbox_runner(
    *,
    workspace: Path,
    environ: Mapping[str, str],
    extra_dirs: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    limits: ResourceLimits | None = None,
    proxy_socket: Path | None = None,
    grace_s: float = GRACE_S,
) -> SandboxCommandRunner:
    """Return a runner whose commands may change these folders and nothing else. Raises SandboxError.

    `hidden` are folders of our own (data, configuration) that stay out of sight even inside an opened folder.
    """
    confinement = build_policy(
        workspace=workspace, environ=environ, extra_dirs=extra_dirs, hidden=hidden, limits=limits
    )
    runner = SandboxCommandRunner(choose_sandbox(confinement), grace_s=grace_s)
    if proxy_socket is not None:
        runner.open_network(proxy_socket)
    return runner


def build_sandbox_executor(
    *,
    runner: SandboxCommandRunner,
    approver: Approver,
    asker: Asker,
    secrets: Iterable[str] = (),
    command_timeout_s: float = 120.0,
    trim_chars: int = OUTPUT_TRIM_LEN,
    warn: Callable[[str], None] | None = None,
    plugin_paths: Sequence[str] | None = None,
) -> tuple[SandboxExecutor, tuple[str, ...]]:
    """Wire runner, tools, judge, approver and output together; return the executor and warnings about plugins."""
    return build_tool_executor(
        SandboxExecutor,
        runner,
        judge=ActionJudge(warn=warn),
        approver=approver,
        asker=asker,
        secrets=secrets,
        command_timeout_s=command_timeout_s,
        trim_chars=trim_chars,
        plugin_paths=plugin_paths,
    )


def choose_sandbox(confinement: SandboxPolicy) -> Sandbox:
    """Return the best box this machine has. Raises SandboxError when it has none."""
    if sys.platform == "darwin":
        return SeatbeltSandbox(confinement)
    program = find_program("bwrap")
    try:
        if program is None:
            return _build_landlock(confinement)
        return BubblewrapSandbox(confinement, program=program, group_place=find_cgroup_parent())
    except UnknownArchitecture as problem:
        raise SandboxError(f"there is no sandbox for this machine: {problem}", hint=install_hint()) from problem


def with_proxy(confinement: SandboxPolicy, socket: Path) -> SandboxPolicy:
    """Return a confinement whose commands find the proxy at the socket, through the relay in front of them."""
    interpreter = Path(sys.base_prefix)
    is_shown = confinement.is_visible(interpreter)
    return replace(
        confinement,
        proxy_socket=socket,
        proxy_env=proxy_environment(),
        command_prefix=relay_argv(()),
        toolchains=confinement.toolchains if is_shown else (*confinement.toolchains, interpreter),
    )


def _build_landlock(confinement: SandboxPolicy) -> LandlockSandbox:
    # Brings ctypes, which a machine with bubblewrap does not need before its first command.
    from agent.backends.sandbox.landlock.kernel import landlock_version

    if sys.platform != "linux" or landlock_version() < 1:
        raise SandboxError("there is no sandbox on this machine: bubblewrap is missing", hint=install_hint())
    return LandlockSandbox(confinement, group_place=find_cgroup_parent())
