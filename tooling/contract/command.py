"""The port through which tools run processes."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """One process to run: a program with its arguments, never a shell string.

    Its environment is the runner's clean one plus `env`. Its input is empty unless `stdin` is a descriptor to read
    from, which must stay open until it has started. If the output exceeds `cap_bytes`, only its head and tail stay in
    memory; if `spool` is set, that file gets the full output. `on_output` gets the output as it arrives. With
    `may_leave_processes`, processes that it starts in the background may outlive it, where the runner supports it.
    `only_reads` is set for a program of the system that changes no file: nothing is compared before and after it.
    """

    argv: tuple[str, ...]
    cwd: Path
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: int | None = None
    cap_bytes: int = 1_000_000
    spool: Path | None = None
    merge_stderr: bool = True
    may_leave_processes: bool = False
    only_reads: bool = False
    cancel_check: Callable[[], bool] | None = None
    on_output: Callable[[bytes], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundProcess:
    """A process that a command left running; `pid` is its id for later commands."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """The exit code of a process, its output (head and tail if it was too long) and the full size of that output.

    `left_running` are processes that still run in the background; `ended_processes` counts those that were killed.
    """

    exit_code: int
    output: bytes
    stderr: bytes = b""
    total_bytes: int = 0
    cut_at: int | None = None
    timed_out: bool = False
    cancelled: bool = False
    spool: Path | None = None
    left_running: tuple[BackgroundProcess, ...] = ()
    ended_processes: int = 0


class CommandRunner(Protocol):
    """Runs processes on the host or in a sandbox; all implementations pass the same contract tests."""

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run until exit, timeout or cancellation; unless the request allows it, no child survives the return.

        Raises OSError if the process cannot be started.
        """
        ...
