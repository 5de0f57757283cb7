"""The tool manage_jobs: list, read and stop background commands."""

from typing import Literal

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.jobs import Job
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.output import decode_output

NO_JOBS = "(no background commands)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageJobsParams:
    """Arguments of manage_jobs."""

    action: Literal["list", "output", "stop"]
    id: str = ""


class ManageJobs(Tool[ManageJobsParams]):
    """Lists background commands, reads their output, and stops them."""

    params = ManageJobsParams
    spec = ToolSpec(
        name="manage_jobs",
        description="List background commands, read the newest output of one, or stop it.",
        parameters=schema_of(ManageJobsParams),
        effect="note",
    )

    async def run(self, params: ManageJobsParams, ctx: ExecCtx) -> ToolResult:
        """Perform the action; the error for an unknown job lists the known ones."""
        if params.action == "list":
            return ToolResult("\n".join(_format_job(job) for job in self._services.jobs.jobs) or NO_JOBS)
        job = self._services.jobs.get(params.id)
        if job is None:
            known = ", ".join(job.id for job in self._services.jobs.jobs) or "none"
            raise ToolError(f"There is no background command {params.id!r}. Known: {known}.")
        if params.action == "stop":
            await self._services.jobs.stop(job)
            return ToolResult(_format_job(job))
        return ToolResult(f"{_format_job(job)}\n{decode_output(job.tail())}".rstrip())


def _format_job(job: Job) -> str:
    return f"{job.id}: {job.state}: {job.command}"
