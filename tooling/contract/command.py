"""The only door from a tool to a process."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """One process to run: a program with its arguments, never a string for somebody else to split.

    Its environment is the runner's clean one plus `env`; its stdin is closed. Output beyond `cap_bytes` is counted
    and, when `spool` is set, kept whole in that file; only head and tail stay in memory.
    """

    argv: tuple[str, ...]
    cwd: Path
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    cap_bytes: int = 1_000_000
    spool: Path | None = None
    merge_stderr: bool = True
    cancel_check: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """What a process left: its code, its output (head and tail when it was too long), and the true size."""

    exit_code: int
    output: bytes
    stderr: bytes = b""
    total_bytes: int = 0
    cut_at: int | None = None
    timed_out: bool = False
    cancelled: bool = False
    spool: Path | None = None


class CommandRunner(Protocol):
    """Runs processes where its backend says; host, sandbox and container adapters pass one contract suite."""

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run to the end, the time limit or cancellation; no process of it survives the return.

        Raises OSError when the process cannot be started at all.
        """
        ...
