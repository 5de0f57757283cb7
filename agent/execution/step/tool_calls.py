"""Where calls are run: each is an event before and after, and none stays without a result, however it ends."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.execution.step.context import Conversation
from agent.protocol.channel import Channel
from agent.protocol.events import Event, FilesChanged, TodoChanged, ToolCompleted, ToolStarted
from agent.vocabulary.message import ToolCall
from agent.vocabulary.step import CallFact
from agent.vocabulary.unfinished import missing_result
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import BAD_ARGUMENTS, CANCELLED, ToolResult, error_result
from tooling.contract.tool import ToolExecutor, ToolSpec


@dataclass(slots=True, kw_only=True)
class _RunningCall:
    """A call on its way; until it has ended its result is what a model must be told if it never does."""

    call: ToolCall
    ctx: ExecCtx
    spec: ToolSpec | None
    result: ToolResult
    start_logged: "asyncio.Future[None] | None" = None
    is_reported: bool = False

    async def mark_started(self) -> None:
        """Wait until its start is on disk, and take note that from now on the call may have its effect."""
        await self.wait_logged()
        self.result = _cancelled_result(self.spec, had_begun=True)

    async def wait_logged(self) -> None:
        """Return when the start of the call is on disk; raises LogWriteError."""
        if self.start_logged is not None:
            await asyncio.shield(self.start_logged)


class ToolCallRunner:
    """Runs the calls of steps through the tool executor."""

    def __init__(self, *, tools: ToolExecutor, channel: Channel, charge: Callable[[str, float, str], None]) -> None:
        self._tools = tools
        self._channel = channel
        self._charge = charge

    def schemas(self, ctx: ExecCtx) -> tuple[dict[str, object], ...]:
        """Return the schemas of the tools that a step may use, in an order that never changes."""
        return tuple(dict(schema) for schema in self._tools.schemas() if ctx.may_use(_tool_name(schema)))

    def effect_of(self, tool: str) -> str | None:
        """Return what calls of a tool do, or None when nobody knows it."""
        spec = self._tools.spec_of(tool)
        return spec.effect if spec else None

    async def run_turn(self, calls: Sequence[ToolCall], talk: Conversation, ctx: ExecCtx) -> list[CallFact]:
        """Run what a model asked for in one turn; the conversation hears a result of every call, whatever happens."""
        begun = [self._prepare(call, talk, ctx) for call in calls]
        try:
            await self._run_all(begun)
        finally:
            facts = talk.add_results(self._finish_all(begun))
        return facts

    async def call(self, call: ToolCall, talk: Conversation, ctx: ExecCtx) -> ToolResult:
        """Run one call that no model asked for: it is evidence, and no part of the conversation."""
        begun = [self._prepare(call, talk, ctx)]
        try:
            await self._run_all(begun)
        finally:
            talk.record_calls(self._finish_all(begun))
        return begun[0].result

    def _prepare(self, call: ToolCall, talk: Conversation, ctx: ExecCtx) -> _RunningCall:
        spec = self._tools.spec_of(call.name)
        return _RunningCall(
            call=call, ctx=talk.next_call(ctx), spec=spec, result=_cancelled_result(spec, had_begun=False)
        )

    async def _run_all(self, begun: Sequence[_RunningCall]) -> None:
        """Run calls side by side when all only read, else in order."""
        if len(begun) > 1 and all(one.spec is not None and one.spec.parallelizable for one in begun):
            # All end before the first failure goes on: nothing may run in a step that is over.
            for ended in await asyncio.gather(*map(self._run, begun), return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended
            return
        for one in begun:
            await self._run(one)

    async def _run(self, one: _RunningCall) -> None:
        call = one.call
        # It goes to the disk while the call is judged: nothing is done before it is there.
        one.start_logged = self._emit_durable(ToolStarted(tool_id=call.id, name=call.name, input=call.arguments), one)
        await asyncio.sleep(0)
        if call.problem:
            one.result = error_result(call.problem, exit_code=BAD_ARGUMENTS)
        else:
            ctx = replace(one.ctx, on_start=one.mark_started)
            one.result = await self._tools.call_tool(call.name, call.arguments, ctx)
        await one.wait_logged()
        if one.result.meta.cost_usd:
            self._charge(call.name, one.result.meta.cost_usd, one.ctx.step_id)
        if one.result.meta.changes:
            self._emit(FilesChanged(changes=one.result.meta.changes), one)
        if one.result.meta.tasks is not None:
            self._emit(TodoChanged(items=one.result.meta.tasks), one)
        one.is_reported = True
        # Not waited for: a model may read it meanwhile, but nothing follows from that before something else is on disk,
        # which stands behind it in the log.
        self._emit(_completed_event(one), one)

    def _finish_all(self, begun: Sequence[_RunningCall]) -> list[tuple[ToolCall, ToolResult]]:
        """Return every call with its result, and tell of those that were stopped."""
        for one in begun:
            if not one.is_reported:
                self._emit(_completed_event(one), one)
        return [(one.call, one.result) for one in begun]

    def _emit_durable(self, event: Event, one: _RunningCall) -> "asyncio.Future[None]":
        return self._channel.emit_durable(event, step_id=one.ctx.step_id, attempt=one.ctx.attempt)

    def _emit(self, event: Event, one: _RunningCall) -> None:
        self._channel.emit(event, step_id=one.ctx.step_id, attempt=one.ctx.attempt)


def _cancelled_result(spec: ToolSpec | None, *, had_begun: bool) -> ToolResult:
    text = missing_result(spec.effect if spec else None, had_begun=had_begun)
    return error_result(text, exit_code=CANCELLED, status="cancelled")


def _completed_event(one: _RunningCall) -> ToolCompleted:
    return ToolCompleted(
        tool_id=one.call.id,
        name=one.call.name,
        status=one.result.meta.status,
        exit_code=one.result.exit_code,
        output=one.result.content,
        display=one.result.display,
    )


def _tool_name(schema: object) -> str:
    function = schema.get("function") if isinstance(schema, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""
