"""The tool schedule_task: schedule work for a worker of the task queue."""

from typing import Annotated, Literal

from tooling.contract.action import Action, Effect
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.scheduler import ScheduledTask, TaskScheduler
from tooling.contract.tool import Tool, ToolSpec

MIN_MINUTES, MAX_MINUTES = 1, 1440
NOTHING = "(nothing is scheduled)"
LATER_REASON = "it starts a run of its own later"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTaskParams:
    """Arguments of schedule_task."""

    action: Literal["add", "list", "cancel"]
    type: Annotated[Literal["message", "command"], "message: a request to you, at that time"] = "message"
    content: str = ""
    delay_minutes: Annotated[int, "1 to 1440"] = 0
    task_id: str = ""


class ScheduleTask(Tool[ScheduleTaskParams]):
    """Schedules requests and commands, lists and cancels them."""

    params = ScheduleTaskParams
    spec = ToolSpec(
        name="schedule_task",
        description="Run a request or a command later, if the user asks for it; list or cancel what is scheduled.",
        parameters=schema_of(ScheduleTaskParams),
        effect="note",
    )

    def action(self, params: ScheduleTaskParams, ctx: ExecCtx) -> Action:
        """Return the action: a command is judged now as it would be if it ran now, and again when it runs.

        Adding always asks: whatever the text says, comments included, a later run reads it as a request of the user.
        """
        effect: Effect = "note"
        subject = " ".join(filter(None, (params.action, params.task_id)))
        changed = ""
        if params.action == "add":
            effect, changed = ("execute" if params.type == "command" else "external"), LATER_REASON
            subject = params.content
        return Action(tool=self.spec.name, effect=effect, subject=subject, cwd=ctx.working_dir, changed=changed)

    async def run(self, params: ScheduleTaskParams, ctx: ExecCtx) -> ToolResult:
        """Add, list or cancel."""
        match params.action:
            case "add":
                _check(params)
                added = await self._scheduler.add(params.type, params.content, params.delay_minutes, ctx)
                return ToolResult(f"Scheduled. A worker (agent worker) must run then.\n{_format(added)}")
            case "list":
                return ToolResult("\n".join(map(_format, await self._scheduler.list())) or NOTHING)
            case "cancel":
                return ToolResult(f"Canceled.\n{_format(await self._scheduler.cancel(params.task_id))}")

    @property
    def _scheduler(self) -> TaskScheduler:
        if self._services.scheduler is None:
            raise ToolError("There is no task queue here.")
        return self._services.scheduler


def _check(params: ScheduleTaskParams) -> None:
    if not params.content.strip():
        raise ToolError("The content is empty.")
    if not MIN_MINUTES <= params.delay_minutes <= MAX_MINUTES:
        raise ToolError(f"delay_minutes is a number from {MIN_MINUTES} to {MAX_MINUTES}.")


def _format(task: ScheduledTask) -> str:
    return f"{task.task_id}: {task.kind} at {task.starts_at}: {task.content}"
