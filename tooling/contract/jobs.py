"""Background commands, as tools see them."""

import asyncio
import time
from pathlib import Path
from typing import Protocol

from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.fast_dataclass import dataclass

_TAIL_BYTES = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One background command and the file of its output."""

    id: str
    command: str
    output: Path
    started_at: float
    task: "asyncio.Task[CommandOutput]"

    @property
    def state(self) -> str:
        """Return whether it is running, or how it ended."""
        if not self.task.done():
            return f"running for {time.monotonic() - self.started_at:.0f} s"
        if self.task.cancelled():
            return "stopped"
        problem = self.task.exception()
        return f"failed: {problem}" if problem else f"exited with {self.task.result().exit_code}"

    def tail(self) -> bytes:
        """Return the end of the output."""
        try:
            with self.output.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _TAIL_BYTES))
                return file.read()
        except FileNotFoundError:
            return b""


class Jobs(Protocol):
    """Starts and stops the background commands of a run; none outlives it."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs, oldest first, including those that have ended."""
        ...

    @property
    def is_full(self) -> bool:
        """Return whether no further job may be started."""
        ...

    def get(self, job_id: str) -> Job | None:
        """Return a job by its id."""
        ...

    async def start(self, command: str, request: CommandRequest, output: Path) -> Job:
        """Start a command; return after a short wait, or earlier if it has already ended."""
        ...

    async def stop(self, job: Job) -> None:
        """Stop a job and everything it started."""
        ...
