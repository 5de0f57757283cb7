"""Event subscribers that write the log file and export telemetry without delaying the run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalResolved,
    ErrorRaised,
    Event,
    FilesChanged,
    MessageAdded,
    NetworkAttempted,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
    WarningRaised,
)
from agent.run_context import RunContext
from agent.telemetry.log_file import LEVELS, LogFile, LogLevel, error_log_path, log_path
from agent.telemetry.trace_ids import telemetry_endpoint, traceparent
from agent.vocabulary.status import is_success
from tooling.contract.action import USER
from tooling.contract.json_codec import JsonObject

Follower: TypeAlias = Callable[[Envelope], None]
NO_EXTRA = "telemetry is not exported, because OpenTelemetry is not installed: pip install 'windlass[otel]'"
_MESSAGE_CHARS = 500
# Time that the end of a run waits for its followers.
_DRAIN_S = 5.0


class Followers:
    """All followers of the events of one run."""

    def __init__(self, context: RunContext) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []
        settings, scope = context.settings, context.scope
        if settings.log_level != "off" and scope.is_persistent:
            log = RunLog(
                LogFile(log_path(scope.data_dir)),
                LogFile(error_log_path(scope.data_dir)),
                settings.log_level,
                {key: value for key, value in _task_facts(context).items() if value},
            )
            self._follow(context, log.write)
            self._closers.append(log.close)
        if endpoint := telemetry_endpoint(settings, context.environ):
            self._export(context, endpoint)

    def _export(self, context: RunContext, endpoint: str) -> None:
        scope = context.scope
        try:
            from agent.telemetry.otel import RunTelemetry
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("opentelemetry"):
                raise
            # `init` must be the first event, so the warning waits for it.
            self._follow(context, lambda envelope: _warn_at_start(envelope, context))
            return
        telemetry = RunTelemetry(
            endpoint=endpoint,
            run_id=scope.run_id,
            session_id=scope.folder.id,
            with_content=context.settings.otel_content,
            trace_id=context.options.trace_id,
        )
        scope.traceparent = traceparent(scope.run_id, context.options.trace_id)

        def export(envelope: Envelope) -> None:
            telemetry.on_event(envelope)
            level = level_of(envelope.event) if envelope.is_durable else None
            if level in ("info", "warning", "error"):
                telemetry.log(envelope, level, _without_output(log_line(envelope, level)))

        self._follow(context, export)
        self._closers.append(telemetry.close)

    def _follow(self, context: RunContext, follower: Follower) -> None:
        events = context.scope.channel.subscribe()

        async def pump() -> None:
            async for envelope in events:
                try:
                    follower(envelope)
                except Exception:  # noqa: BLE001 (a follower must never disturb the run)
                    pass

        self._tasks.append(asyncio.create_task(pump(), name="follower"))

    async def close(self) -> None:
        """Wait briefly until all events are processed; call it after the channel is closed."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_DRAIN_S)
            for task in late:
                task.cancel()
        for close in self._closers:
            await close()


def _task_facts(context: RunContext) -> JsonObject:
    """Return the fields that connect the log lines of a run to its task."""
    return {"task_id": context.options.task_id, "trace_id": context.options.trace_id}


def _without_output(line: JsonObject) -> JsonObject:
    """Return a line without the output of a tool, which may contain anything."""
    message = str(line["message"])
    return {**line, "message": message.partition(":")[0] if line["event"] == ToolCompleted.type else message}


def _warn_at_start(envelope: Envelope, context: RunContext) -> None:
    if isinstance(envelope.event, RunStarted):
        context.scope.channel.emit(WarningRaised(message=NO_EXTRA))


class RunLog:
    """Writes the events of a run that have a line at the chosen level; errors also go to a separate file.

    `facts` are part of every line.
    """

    def __init__(self, log: LogFile, errors: LogFile, level: LogLevel, facts: Mapping[str, object]) -> None:
        self._facts = facts
        self._log = log
        self._errors = errors
        self._threshold = LEVELS.index(level)

    def write(self, envelope: Envelope) -> None:
        """Write the line of an event, if it has one at this level."""
        if not envelope.is_durable:
            return
        level = level_of(envelope.event)
        if level is None or LEVELS.index(level) < self._threshold:
            return
        line = {**log_line(envelope, level), **self._facts}
        self._log.write(line)
        if level == "error":
            self._errors.write(line)

    async def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._errors.close()


def level_of(event: Event) -> LogLevel | None:
    """Return the level of an event; None if it has no line."""
    match event:
        case ErrorRaised() | ToolCompleted(status="error" | "timeout"):
            return "error"
        case RunCompleted(is_error=is_error):
            return "error" if is_error else "info"
        case StepCompleted(status=status):
            return "info" if is_success(status) else "warning"
        case NetworkAttempted(allowed=allowed):
            return "debug" if allowed else "warning"
        case WarningRaised() | ToolCompleted(status="denied" | "blocked" | "deferred" | "cancelled"):
            return "warning"
        case RunStarted() | StepStarted() | ApprovalResolved() | FilesChanged() | PlanUpdated():
            return "info"
        case ToolStarted() | ToolCompleted() | MessageAdded():
            return "debug"
        case _:
            return None


def log_line(envelope: Envelope, level: LogLevel) -> JsonObject:
    """Return the line of an event: its run and step, the event, and its numbers; secrets are already masked."""
    step = {"step_id": envelope.step_id} if envelope.step_id else {}
    return {
        "ts": envelope.ts,
        "level": level,
        "session_id": envelope.session_id,
        "run_id": envelope.run_id,
        **step,
        "event": envelope.event.type,
        **_facts(envelope.event),
    }


def _facts(event: Event) -> JsonObject:
    match event:
        case RunStarted():
            return {"message": f"started in {event.cwd}", "model": event.model, "warnings": list(event.warnings)}
        case RunCompleted():
            return {
                "message": _shorten(event.error or event.subtype),
                "exit_code": event.exit_code,
                "duration_ms": event.duration_ms,
                "total_cost_usd": event.total_cost_usd,
            }
        case PlanUpdated():
            count = len(event.steps)
            steps = "1 step" if count == 1 else f"{count} steps"
            return {"message": f"plan {event.revision} with {steps} ({event.reason})"}
        case StepStarted():
            return {"message": "started" if event.cache == "miss" else f"started ({event.cache})"}
        case StepCompleted():
            return {"message": event.status, "elapsed_ms": event.elapsed_ms}
        case ToolStarted():
            return {"message": event.name, "tool": event.name, "tool_id": event.tool_id}
        case ToolCompleted():
            said = "" if event.status == "ok" else f": {_shorten(event.output)}"
            call = {"tool": event.name, "tool_id": event.tool_id, "exit_code": event.exit_code}
            return {"message": f"{event.name} {event.status}{said}", **call}
        case ApprovalResolved():
            by = "the user" if event.by == USER else event.by
            return {"message": f"{event.decision} by {by}", "approval_id": event.approval_id}
        case FilesChanged():
            return {"message": _shorten(", ".join(change.path for change in event.changes))}
        case NetworkAttempted():
            return {"message": f"{event.host}:{event.port} {'allowed' if event.allowed else 'refused'}: {event.reason}"}
        case MessageAdded():
            return {"message": f"{event.role}, {len(event.content)} characters"}
        case WarningRaised() | ErrorRaised():
            return {"message": _shorten(event.message)}
        case _:
            return {"message": ""}


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE_CHARS else f"{line[: _MESSAGE_CHARS - 1]}…"
