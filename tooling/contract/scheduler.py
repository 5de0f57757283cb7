"""The port through which a run schedules work for later."""

from typing import Literal, Protocol, TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

ScheduledKind: TypeAlias = Literal["message", "command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledTask:
    """A scheduled task; `starts_at` is a time in UTC, for display."""

    task_id: str
    kind: ScheduledKind
    content: str
    starts_at: str


class TaskScheduler(Protocol):
    """Schedules tasks that outlive the run. Methods raise ToolError on failure."""

    async def add(self, kind: ScheduledKind, content: str, delay_minutes: int, ctx: ExecCtx) -> ScheduledTask:
        """Schedule a request to the agent, or a command."""
        ...

    async def list(self) -> tuple[ScheduledTask, ...]:
        """Return the scheduled tasks that have not started."""
        ...

    async def cancel(self, task_id: str) -> ScheduledTask:
        """Cancel a scheduled task."""
        ...
