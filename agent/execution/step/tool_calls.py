"""Runs tool calls: each is logged before and after, and every call gets a result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agent.execution.step.context import Conversation
from agent.protocol.channel import Channel
from agent.protocol.events import Event, FilesChanged, TodoChanged, ToolCompleted, ToolOutput, ToolStarted
from agent.vocabulary.message import ToolCall
from agent.vocabulary.step import CallFact
from agent.vocabulary.unfinished import missing_result
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import BAD_ARGUMENTS, CANCELLED, FileChange, TaskItem, ToolResult, error_result
from tooling.contract.tool import ToolExecutor, ToolSpec, schema_name
from tooling.output import decode_output, sanitize_output

_LIVE_INTERVAL_S = 0.1
# Much more than is shown, because a multi-line key is recognized only as a whole.
_LIVE_BYTES = 32_000


class CallWatch(Protocol):
    """Watches the changes of one call in the workspace."""

    async def open(self) -> None:
        """Wait until the call may run."""
        ...

    def close(self, changes: Sequence[FileChange]) -> None:
        """Report that the call has ended or will never run, with the changes that it recorded itself."""
        ...


class CallTracker(Protocol):
    """Watches changes of calls in the workspace beyond those they report."""

    def watch(self, call_id: str, effect: str | None, arguments: Mapping[str, object], ctx: ExecCtx) -> CallWatch:
        """Return the watch of a call."""
        ...


@dataclass(slots=True, kw_only=True)
class _RunningCall:
    """A call in progress; until it ends, `result` is the result for the model in case of cancellation."""

    call: ToolCall
    ctx: ExecCtx
    spec: ToolSpec | None
    result: ToolResult
    watch: CallWatch | None = None
    start_logged: "asyncio.Future[None] | None" = None
    is_reported: bool = False

    async def mark_started(self, *, only_reads: bool = False) -> None:
        """Wait until the start is on disk; from then on the call may have had an effect.

        A read-only call has none: it runs while its start is written, and ends when that is on disk.
        """
        if not only_reads:
            await self.wait_logged()
        if self.watch:
            await self.watch.open()
        self.result = _cancelled_result(self.spec, had_started=True)

    def end_watch(self) -> None:
        """Scan for changes in the background, while the model reads the result."""
        if self.watch:
            self.watch.close(self.result.meta.changes)

    async def wait_logged(self) -> None:
        """Wait until the start of the call is on disk; raises LogWriteError."""
        if self.start_logged is not None:
            await asyncio.shield(self.start_logged)


class LiveOutput:
    """Receives the output of a call and reports its complete lines, at most ten times a second.

    Only complete lines, because a partial secret would not be recognized.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._tail = b""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        """Add the next bytes; called in the event loop."""
        self._tail = (self._tail + data)[-_LIVE_BYTES:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LIVE_INTERVAL_S, self.flush)

    def close(self) -> None:
        """Stop reporting."""
        if self._timer is not None:
            self._timer.cancel()

    def flush(self) -> None:
        """Report the complete lines now; the channel delivers the last ones."""
        self._timer = None
        # A progress bar ends its line with a carriage return; the first line may have lost its beginning.
        lines = self._tail.replace(b"\r", b"\n").split(b"\n")[:-1]
        is_cut = len(self._tail) == _LIVE_BYTES
        complete = b"\n".join(line for line in lines[is_cut:] if line.strip())
        if text := sanitize_output(decode_output(complete)):
            self._report(text)


class ToolCallRunner:
    """Runs the calls of steps through the tool executor."""

    def __init__(
        self,
        *,
        tools: ToolExecutor,
        channel: Channel,
        charge: Callable[[str, float, str], None],
        tracker: CallTracker | None = None,
    ) -> None:
        self._tools = tools
        self._tracker = tracker
        self._channel = channel
        self._charge = charge
        self._schemas: dict[
            tuple[tuple[str, ...] | None, str], tuple[list[Mapping[str, object]], tuple[Mapping[str, object], ...]]
        ] = {}

    def schemas(self, ctx: ExecCtx, *, without: str = "") -> tuple[Mapping[str, object], ...]:
        """Return the schemas of the tools a step may use, in a stable order; the same value for steps alike."""
        offered = self._tools.schemas()
        known = self._schemas.get((ctx.allowed_tools, without))
        if known is None or known[0] != offered:
            usable = tuple(
                schema for schema in offered if (name := schema_name(schema)) != without and ctx.may_use(name)
            )
            known = self._schemas[ctx.allowed_tools, without] = (offered, usable)
        return known[1]

    def effect_of(self, tool: str) -> str | None:
        """Return the effect of a tool, or None if the tool is unknown."""
        spec = self._tools.spec_of(tool)
        return spec.effect if spec else None

    async def run_turn(self, calls: Sequence[ToolCall], conversation: Conversation, ctx: ExecCtx) -> list[CallFact]:
        """Run the calls of one turn and add a result for each to the conversation, even if cancelled."""
        running = [self._prepare(call, conversation, ctx) for call in calls]
        try:
            await self._run_all(running)
        finally:
            facts = conversation.add_results(self._finish_all(running))
        return facts

    async def call(self, call: ToolCall, conversation: Conversation, ctx: ExecCtx) -> ToolResult:
        """Run one call that no model requested; it is recorded as evidence, not as a message."""
        running = [self._prepare(call, conversation, ctx)]
        try:
            await self._run_all(running)
        finally:
            conversation.record_calls(self._finish_all(running))
        return running[0].result

    async def call_unasked(self, call: ToolCall, ctx: ExecCtx) -> ToolResult | None:
        """Run one call that is no part of the step's work; None, and no event, if it needs approval or is refused."""
        ctx = replace(ctx, call_id=call.id, tool_id=call.id, may_ask=False)
        running_call = self._new_call(call, ctx)

        async def start(*, only_reads: bool = False) -> None:
            started = ToolStarted(tool_id=call.id, name=call.name, input=call.arguments)
            running_call.start_logged = self._emit_durable(started, running_call)
            await running_call.mark_started(only_reads=only_reads)

        try:
            result = await self._tools.call_tool(call.name, call.arguments, replace(ctx, on_start=start))
            running_call.result = result if running_call.start_logged else running_call.result
        finally:
            running_call.end_watch()
            if running_call.start_logged:
                self._finish_all([running_call])
        return running_call.result if running_call.start_logged else None

    def _prepare(self, call: ToolCall, conversation: Conversation, ctx: ExecCtx) -> _RunningCall:
        return self._new_call(call, conversation.next_call(call, ctx))

    def _new_call(self, call: ToolCall, ctx: ExecCtx) -> _RunningCall:
        spec = self._tools.spec_of(call.name)
        effect = spec.effect if spec else None
        return _RunningCall(
            call=call,
            ctx=ctx,
            spec=spec,
            result=_cancelled_result(spec, had_started=False),
            watch=self._tracker.watch(call.id, effect, call.arguments, ctx) if self._tracker else None,
        )

    async def _run_all(self, running: Sequence[_RunningCall]) -> None:
        """Run the calls concurrently if all are parallelizable, else in order."""
        if len(running) > 1 and all(
            running_call.spec is not None and running_call.spec.parallelizable for running_call in running
        ):
            # Wait for all before raising the first failure: no call may outlive its step.
            for ended in await asyncio.gather(*map(self._run, running), return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended
            return
        for running_call in running:
            await self._run(running_call)

    async def _run(self, running_call: _RunningCall) -> None:
        call = running_call.call
        # On disk before the call runs, unless it only reads.
        running_call.start_logged = self._emit_durable(
            ToolStarted(tool_id=call.id, name=call.name, input=call.arguments), running_call
        )
        if call.problem:
            running_call.result = error_result(call.problem, exit_code=BAD_ARGUMENTS)
        else:
            live = LiveOutput(lambda text: self._emit(ToolOutput(tool_id=call.id, text=text), running_call))
            ctx = replace(running_call.ctx, on_start=running_call.mark_started, on_output=live.feed)
            try:
                running_call.result = await self._tools.call_tool(call.name, call.arguments, ctx)
            finally:
                live.close()
                running_call.end_watch()
        await running_call.wait_logged()
        if running_call.result.meta.cost_usd:
            self._charge(call.name, running_call.result.meta.cost_usd, running_call.ctx.step_id)
        if running_call.result.meta.changes:
            self._emit(FilesChanged(changes=running_call.result.meta.changes), running_call)
        if (tasks := running_call.result.meta.tasks) is not None:
            self._emit(TodoChanged(items=tasks, progress=_progress(tasks)), running_call)
        running_call.is_reported = True
        # Not awaited: the model may read the result now, but its next action starts only after a later event is on
        # disk.
        self._emit(_completed_event(running_call), running_call)

    def _finish_all(self, running: Sequence[_RunningCall]) -> list[tuple[ToolCall, ToolResult]]:
        """Return every call with its result, reporting those that were cancelled."""
        for running_call in running:
            if not running_call.is_reported:
                self._emit(_completed_event(running_call), running_call)
        return [(running_call.call, running_call.result) for running_call in running]

    def _emit_durable(self, event: Event, running_call: _RunningCall) -> "asyncio.Future[None]":
        return self._channel.emit_durable(event, step_id=running_call.ctx.step_id, attempt=running_call.ctx.attempt)

    def _emit(self, event: Event, running_call: _RunningCall) -> None:
        self._channel.emit(event, step_id=running_call.ctx.step_id, attempt=running_call.ctx.attempt)


def _progress(tasks: Sequence[TaskItem]) -> int | None:
    """Return the completed share of a list in percent; None for an empty one."""
    return 100 * sum(task.status == "completed" for task in tasks) // len(tasks) if tasks else None


def _cancelled_result(spec: ToolSpec | None, *, had_started: bool) -> ToolResult:
    text = missing_result(spec.effect if spec else None, had_started=had_started)
    return error_result(text, exit_code=CANCELLED, status="cancelled")


def _completed_event(running_call: _RunningCall) -> ToolCompleted:
    return ToolCompleted(
        tool_id=running_call.call.id,
        name=running_call.call.name,
        status=running_call.result.meta.status,
        exit_code=running_call.result.exit_code,
        output=running_call.result.content,
        display=running_call.result.display,
        images=running_call.result.images or None,
        allowed_by=running_call.result.meta.allowed_by or None,
    )
