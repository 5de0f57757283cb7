"""The tool manage_tasks: the agent's to-do list."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import TaskItem, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec

TaskStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]
OPEN_STATUSES = ("pending", "in_progress")
_TaskList: TypeAlias = dict[str, TaskItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParams:
    """One task as given by the model."""

    id: str | int | None = None
    content: str | None = None
    status: TaskStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageTasksParams:
    """Arguments of manage_tasks."""

    action: Annotated[Literal["add", "update", "list", "clear"], "clear drops finished tasks"]
    tasks: tuple[TaskParams, ...] = ()


class ManageTasks(Tool[ManageTasksParams]):
    """Manages a list for the session, and one for each step of a plan, starting with the list of an earlier run."""

    params = ManageTasksParams
    spec = ToolSpec(
        name="manage_tasks",
        description="Keep your own to-do list for long work.",
        parameters=schema_of(ManageTasksParams),
        effect="note",
    )

    def __init__(self, services: ToolServices) -> None:
        super().__init__(services)
        self._lists: dict[tuple[str, str], _TaskList] = {}

    async def run(self, params: ManageTasksParams, ctx: ExecCtx) -> ToolResult:
        """Change the list and return it."""
        key = (ctx.session_id, ctx.step_id)
        if key not in self._lists:
            saved = await asyncio.to_thread(self._services.saved_tasks, ctx)
            self._lists.setdefault(key, {task.id: task for task in saved})
        tasks = self._lists[key]
        match params.action:
            case "add":
                _add(tasks, params.tasks)
            case "update":
                _update(tasks, params.tasks)
            case "clear":
                for id in [task.id for task in tasks.values() if task.status not in OPEN_STATUSES]:
                    del tasks[id]
            case "list":
                pass
        items = tuple(tasks.values())
        return ToolResult(format_tasks(items), meta=ToolMeta(tasks=items))


def format_tasks(tasks: Iterable[TaskItem]) -> str:
    """Format id, content and status of each task, one per line."""
    return "\n".join(f"{task.id}. {task.content} [{task.status}]" for task in tasks) or "(no tasks)"


def _add(tasks: _TaskList, changes: tuple[TaskParams, ...]) -> None:
    if not changes or any(not task.content for task in changes):
        raise ToolError("add needs tasks, each with content.")
    for task in changes:
        id = _next_id(tasks) if task.id is None else str(task.id)
        tasks[id] = TaskItem(id=id, content=task.content or "", status=task.status or "pending")


def _update(tasks: _TaskList, changes: tuple[TaskParams, ...]) -> None:
    unknown = [str(task.id) for task in changes if str(task.id) not in tasks]
    if unknown or not changes:
        raise ToolError(f"update needs ids of known tasks; unknown: {', '.join(unknown) or 'none given'}.")
    for task in changes:
        old = tasks[str(task.id)]
        tasks[old.id] = TaskItem(id=old.id, content=task.content or old.content, status=task.status or old.status)


def _next_id(tasks: _TaskList) -> str:
    number = len(tasks) + 1
    while str(number) in tasks:
        number += 1
    return str(number)
