"""Who calls a tool, on whose behalf, where, and how the call can be stopped."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCtx:
    """Identity, scope and cancellation of one call; nothing here is an argument of the tool.

    `on_start` is awaited at the moment from which the call may have its effect: judged, allowed, about to be run.
    """

    user_id: UUID
    task_id: UUID
    working_dir: Path
    cancel_check: Callable[[], bool] | None = None
    on_start: Callable[[], Awaitable[None]] | None = None
    session_id: str = ""
    step_id: str = ""
    attempt: int = 1
    call_id: str = ""
    extra_dirs: tuple[Path, ...] = ()
    outputs_dir: Path | None = None
    blobs_dir: Path | None = None
    allowed_tools: tuple[str, ...] | None = None
    chat_type: str = "private"

    def may_use(self, tool: str) -> bool:
        """Say whether this call's rights include the tool."""
        return self.allowed_tools is None or tool in self.allowed_tools
