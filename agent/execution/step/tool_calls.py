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
from tooling.contract.result import BAD_ARGUMENTS, CANCELLED, ToolResult, failed
from tooling.contract.tool import ToolExecutor, ToolSpec


@dataclass(slots=True, kw_only=True)
class _Call:
    """A call on its way; until it has ended its result is what a model must be told if it never does."""

    call: ToolCall
    ctx: ExecCtx
    spec: ToolSpec | None
    result: ToolResult
    started: "asyncio.Future[None] | None" = None
    is_told: bool = False

    async def begin(self) -> None:
        """Wait until its start is on disk, and take note that from now on the call may have its effect."""
        await self.kept()
        self.result = _stopped(self.spec, had_begun=True)

    async def kept(self) -> None:
        """Return when the start of the call is on disk; raises LogWriteError."""
        if self.started is not None:
            await asyncio.shield(self.started)


class CallDesk:
    """Runs the calls of steps through the tool executor."""

    def __init__(self, *, tools: ToolExecutor, channel: Channel, book: Callable[[str, float, str], None]) -> None:
        self._tools = tools
        self._channel = channel
        self._book = book

    def schemas(self, ctx: ExecCtx) -> tuple[dict[str, object], ...]:
        """Return the schemas of the tools that a step may use, in an order that never changes."""
        return tuple(dict(schema) for schema in self._tools.schemas() if ctx.may_use(_name_of(schema)))

    def effect_of(self, tool: str) -> str | None:
        """Return what calls of a tool do, or None when nobody knows it."""
        spec = self._tools.spec_of(tool)
        return spec.effect if spec else None

    async def answer_all(self, calls: Sequence[ToolCall], talk: Conversation, ctx: ExecCtx) -> list[CallFact]:
        """Run what a model asked for in one turn; the conversation hears a result of every call, whatever happens."""
        begun = [self._prepared(call, talk, ctx) for call in calls]
        try:
            await self._run_all(begun)
        finally:
            facts = talk.hear(self._endings(begun))
        return facts

    async def call(self, call: ToolCall, talk: Conversation, ctx: ExecCtx) -> ToolResult:
        """Run one call that no model asked for: it is evidence, and no part of the conversation."""
        begun = [self._prepared(call, talk, ctx)]
        try:
            await self._run_all(begun)
        finally:
            talk.note(self._endings(begun))
        return begun[0].result

    def _prepared(self, call: ToolCall, talk: Conversation, ctx: ExecCtx) -> _Call:
        spec = self._tools.spec_of(call.name)
        return _Call(call=call, ctx=talk.next_call(ctx), spec=spec, result=_stopped(spec, had_begun=False))

    async def _run_all(self, begun: Sequence[_Call]) -> None:
        """Run calls side by side when all only read, else in order."""
        if len(begun) > 1 and all(one.spec is not None and one.spec.parallelizable for one in begun):
            # All end before the first failure goes on: nothing may run in a step that is over.
            for ended in await asyncio.gather(*map(self._run, begun), return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended
            return
        for one in begun:
            await self._run(one)

    async def _run(self, one: _Call) -> None:
        call = one.call
        # It goes to the disk while the call is judged: nothing is done before it is there.
        one.started = self._announce(ToolStarted(tool_id=call.id, name=call.name, input=call.arguments), one)
        await asyncio.sleep(0)
        if call.problem:
            one.result = failed(call.problem, exit_code=BAD_ARGUMENTS)
        else:
            ctx = replace(one.ctx, on_run=one.begin)
            one.result = await self._tools.call_tool(call.name, call.arguments, ctx)
        await one.kept()
        if one.result.meta.cost_usd:
            self._book(call.name, one.result.meta.cost_usd, one.ctx.step_id)
        if one.result.meta.changes:
            self._whisper(FilesChanged(changes=one.result.meta.changes), one)
        if one.result.meta.tasks is not None:
            self._whisper(TodoChanged(items=one.result.meta.tasks), one)
        one.is_told = True
        # Not waited for: a model may read it meanwhile, but nothing follows from that before something else is on disk,
        # which stands behind it in the log.
        self._whisper(_completed(one), one)

    def _endings(self, begun: Sequence[_Call]) -> list[tuple[ToolCall, ToolResult]]:
        """Return every call with its result, and tell of those that were stopped."""
        for one in begun:
            if not one.is_told:
                self._whisper(_completed(one), one)
        return [(one.call, one.result) for one in begun]

    def _announce(self, event: Event, one: _Call) -> "asyncio.Future[None]":
        return self._channel.announce(event, step_id=one.ctx.step_id, attempt=one.ctx.attempt)

    def _whisper(self, event: Event, one: _Call) -> None:
        self._channel.whisper(event, step_id=one.ctx.step_id, attempt=one.ctx.attempt)


def _stopped(spec: ToolSpec | None, *, had_begun: bool) -> ToolResult:
    text = missing_result(spec.effect if spec else None, had_begun=had_begun)
    return failed(text, exit_code=CANCELLED, status="cancelled")


def _completed(one: _Call) -> ToolCompleted:
    return ToolCompleted(
        tool_id=one.call.id,
        name=one.call.name,
        status=one.result.meta.status,
        exit_code=one.result.exit_code,
        output=one.result.content,
        display=one.result.display,
    )


def _name_of(schema: object) -> str:
    function = schema.get("function") if isinstance(schema, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""
