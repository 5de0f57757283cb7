"""Built-in hooks that track a run: its to-do list, and its events for a callback URL."""

from collections.abc import Awaitable, Callable, Sequence

from agent.hooks.callback_client import CallbackClient
from agent.hooks.hook import EventHook
from agent.protocol.envelope import Envelope
from agent.protocol.events import FilesChanged, PlanUpdated, StepCompleted, TodoChanged
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.json_codec import JsonObject, encode
from tooling.contract.result import TaskItem

Report = Callable[[int, str], Awaitable[None]]


class TodoHook(EventHook):
    """Tracks the agent's to-do list; `report` gets the progress in percent and the current item after each change."""

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self.items: tuple[TaskItem, ...] = ()

    @property
    def progress(self) -> int:
        """Completed share of the list, in percent."""
        done = sum(item.status == "completed" for item in self.items)
        return 100 * done // len(self.items) if self.items else 0

    @property
    def current(self) -> str:
        """The item in progress, if there is one."""
        return next((item.content for item in self.items if item.status == "in_progress"), "")

    async def on_event(self, envelope: Envelope) -> None:
        """Store a changed list."""
        if isinstance(envelope.event, TodoChanged):
            self.items = envelope.event.items
            if self._report:
                await self._report(self.progress, self.current)


class CallbackHook(EventHook):
    """Reports a run to a URL: start, tool calls, responses and end, each with the progress so far."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client
        self._todo = TodoHook()
        self._steps: tuple[str, ...] = ()
        self._ended: set[str] = set()
        self._changes: dict[str, tuple[int, int]] = {}
        self._progress = 0

    async def before_execution(self, config: TaskConfig) -> None:
        """Report the start."""
        self._client.start()
        about = {"model": config.model, "repo_url": config.repo_url, "git_branch": config.git_branch}
        given = {name: value for name, value in about.items() if value}
        await self._client.send_callback("task_started", {**given, **self._status("running")})

    async def on_event(self, envelope: Envelope) -> None:
        """Track to-do list, plan and files."""
        await self._todo.on_event(envelope)
        match envelope.event:
            case PlanUpdated(steps=steps):
                self._steps = tuple(step.id for step in steps)
            case StepCompleted():
                self._ended.add(envelope.step_id or "")
            case FilesChanged(changes=changes):
                for change in changes:
                    added, deleted = self._changes.get(change.path, (0, 0))
                    self._changes[change.path] = (added + change.added_lines, deleted + change.deleted_lines)
            case _:
                pass

    async def on_tool_call(self, turn: int, tool_name: str, tool_input: JsonObject, tool_output: str) -> None:
        """Report a call."""
        call = {"turn": turn, "tool_name": tool_name, "tool_input": encode(tool_input), "tool_output": tool_output}
        await self._client.send_callback("tool_call", {**call, **self._status("running")})

    async def on_response(self, turn: int, response: str) -> None:
        """Report the text of the model."""
        await self._client.send_callback(
            "agent_response", {"turn": turn, "response": response, **self._status("running")}
        )

    async def after_execution(self, success: bool, error: str | None) -> None:  # noqa: FBT001 (a published signature)
        """Report the end, and wait briefly until it is delivered."""
        if success:
            self._progress = 100
            await self._client.send_callback("task_completed", self._status("completed"))
        else:
            await self._client.send_callback("task_failed", {**self._status("failed"), "error_message": error or ""})
        await self._client.close()

    def _status(self, status: str) -> JsonObject:
        """Return status, progress and state as in a status report; progress never decreases."""
        self._progress = max(self._progress, min(99, max(self._todo.progress, self._step_progress())))
        added = sum(lines[0] for lines in self._changes.values())
        deleted = sum(lines[1] for lines in self._changes.values())
        return {
            "status": status,
            "progress": 100 if status == "completed" else self._progress,
            "error_message": None,
            "state_patch": {
                "todos": _as_json(self._todo.items),
                "current_step": self._todo.current or None,
                "mcp_status": [],
                "workspace_state": {
                    "files": len(self._changes),
                    "added_lines": added,
                    "deleted_lines": deleted,
                },
            },
        }

    def _step_progress(self) -> int:
        return 100 * len(self._ended & {*self._steps}) // len(self._steps) if len(self._steps) > 1 else 0


class SpooledCallbacks(EventHook):
    """Delivers undelivered events of earlier runs during a run that has no callbacks itself."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client

    async def before_execution(self, config: TaskConfig) -> None:
        """Start sending."""
        self._client.start()

    async def after_execution(self, success: bool, error: str | None) -> None:  # noqa: FBT001 (a published signature)
        """Stop sending."""
        await self._client.close()


def _as_json(items: Sequence[TaskItem]) -> list[object]:
    return [encode(item) for item in items]
