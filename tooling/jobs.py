"""Commands that go on in the background: started on purpose, owned by the run, listed, and ended with it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner
from tooling.contract.fast_dataclass import dataclass

MAX_JOB_S = 24 * 3600.0
MAX_JOBS = 16
# Long enough to notice a server that cannot bind its port, short enough not to be felt.
STARTUP_WAIT_S = 0.3
_TAIL_BYTES = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One background command and where its output goes."""

    id: str
    command: str
    output: Path
    started_at: float
    task: "asyncio.Task[CommandOutput]"

    @property
    def state(self) -> str:
        """Return whether it runs, or how it ended."""
        if not self.task.done():
            return f"running for {time.monotonic() - self.started_at:.0f} s"
        if self.task.cancelled():
            return "stopped"
        problem = self.task.exception()
        return f"failed: {problem}" if problem else f"exited with {self.task.result().exit_code}"

    def tail(self) -> bytes:
        """Return the newest part of the output."""
        try:
            with self.output.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _TAIL_BYTES))
                return file.read()
        except FileNotFoundError:
            return b""


class BackgroundJobs:
    """Keeps the background commands of a run; none outlives it."""

    def __init__(self, runner: CommandRunner, mask: Callable[[Path], None] | None = None) -> None:
        self._runner = runner
        self._mask = mask
        self._jobs: dict[str, Job] = {}

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs, ended ones too, oldest first."""
        return tuple(self._jobs.values())

    @property
    def is_full(self) -> bool:
        """Say whether as many run as may."""
        return sum(not job.task.done() for job in self._jobs.values()) >= MAX_JOBS

    def get(self, job_id: str) -> Job | None:
        """Return a job by its id."""
        return self._jobs.get(job_id)

    async def start(self, command: str, request: CommandRequest, output: Path) -> Job:
        """Start a command and return once it has survived its first moment, or died in it."""
        # A cap of nothing sends every byte to the file, where it can be read while the job runs.
        request = replace(request, spool=output, cap_bytes=2, timeout_s=MAX_JOB_S)
        job = Job(
            id=f"job{len(self._jobs) + 1}",
            command=command,
            output=output,
            started_at=time.monotonic(),
            task=asyncio.ensure_future(self._runner.run(request)),
        )
        self._jobs[job.id] = job
        await asyncio.wait({job.task}, timeout=STARTUP_WAIT_S)
        return job

    async def stop(self, job: Job) -> None:
        """End a job and everything it started."""
        job.task.cancel()
        await asyncio.wait({job.task})

    async def close(self) -> None:
        """End all jobs, side by side: each may take its time to tidy up; no secret stays in what they wrote."""
        tasks = [job.task for job in self.jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in self.jobs:
            if self._mask is not None and job.output.exists():
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self._mask, job.output)
