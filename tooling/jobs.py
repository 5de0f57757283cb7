"""Background commands of a run: started on request, listed, and ended with the run."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tooling.contract.command import CommandRequest, CommandRunner
from tooling.contract.jobs import Job

MAX_JOB_S = 24 * 3600.0
MAX_JOBS = 16
# Long enough to notice a server that cannot bind its port, short enough to go unnoticed.
STARTUP_WAIT_S = 0.3


class BackgroundJobs:
    """Runs the background commands of a run."""

    def __init__(self, runner: CommandRunner, mask: Callable[[Path], None] | None = None) -> None:
        self._runner = runner
        self._mask = mask
        self._jobs: dict[str, Job] = {}

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs, oldest first, including those that have ended."""
        return tuple(self._jobs.values())

    @property
    def is_full(self) -> bool:
        """Return whether the maximum number of jobs is running."""
        return sum(not job.task.done() for job in self._jobs.values()) >= MAX_JOBS

    def get(self, job_id: str) -> Job | None:
        """Return a job by its id."""
        return self._jobs.get(job_id)

    async def start(self, command: str, request: CommandRequest, output: Path) -> Job:
        """Start a command; return after a short wait, or earlier if it has already ended."""
        # With almost no cap every byte goes to the file, where it can be read while the job runs.
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
        """Stop a job and everything it started."""
        job.task.cancel()
        await asyncio.wait({job.task})

    async def close(self) -> None:
        """Stop all jobs in parallel, and mask secrets in their output files."""
        tasks = [job.task for job in self.jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in self.jobs:
            if self._mask is not None and job.output.exists():
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self._mask, job.output)
