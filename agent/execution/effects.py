"""The effect ledger: effects outside the workspace, recorded before and after, and never repeated without asking."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from agent.protocol.channel import Channel
from agent.protocol.events import EffectRecorded
from agent.vocabulary.effects import EffectKind, EffectRecord, EffectStatus
from agent.vocabulary.unfinished import DONE_CALL, UNKNOWN_EFFECT
from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.json_codec import encode
from tooling.contract.question import Asker, Question
from tooling.contract.result import TOOL_RAISED, ToolResult, error_result

IN_DOUBT = "A run was stopped during this, and it may have been done: {target}"
REPEAT, WAS_DONE, SKIP = "Do it again", "It was done", "Skip it"
# Read-only effects, which are safe to repeat.
_SAFE_TOOLS = frozenset({"fetch_page", "search_web"})
_HOST = "host"


class EffectLedger(Interceptor):
    """Records the effects of one run; `earlier` are those of the resumed runs."""

    def __init__(
        self,
        *,
        channel: Channel,
        asker: Asker,
        backend: str,
        lineage: str,
        earlier: Mapping[str, EffectRecord] | None = None,
    ) -> None:
        self._channel = channel
        self._asker = asker
        self._backend = backend
        self._lineage = lineage
        earlier = earlier or {}
        self._earlier = {effect_id: record for effect_id, record in earlier.items() if not record.is_settled}
        self._counts: dict[str, int] = {}
        for effect_id in earlier:
            identity, _, number = effect_id.rpartition("-")
            self._counts[identity] = max(self._counts.get(identity, 0), int(number))
        self._open: dict[str, EffectRecord] = {}

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """The effects with unknown results: those of earlier runs, and those still open."""
        doubtful = (*(record for record in self._earlier.values() if record.is_in_doubt), *self._open.values())
        return tuple(f"{record.kind} {record.target} ({record.effect_id})" for record in doubtful)

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Record an effect before it happens; return a result in its place if it must not be repeated."""
        kind = self._kind_of(call)
        if kind is None:
            return None
        identity = self._identity(call)
        record = EffectRecord(
            effect_id=f"{identity}-{self._counts.get(identity, 0) + 1}",
            kind=kind,
            target=call.action.subject,
            status="started",
            call_id=call.ctx.tool_id,
            is_safe=call.tool.spec.name in _SAFE_TOOLS,
        )
        if earlier := self._unresolved(identity):
            if not earlier.is_safe and (refusal := await self._resolve(earlier, call)):
                return refusal
            # The same key, so that a server can recognize the repetition.
            record = replace(record, effect_id=earlier.effect_id)
            del self._earlier[earlier.effect_id]
        self._counts[identity] = int(record.effect_id.rpartition("-")[2])
        await self._publish(record, call)
        self._open[record.effect_id] = record
        call.ctx = replace(call.ctx, effect_key=record.effect_id)
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Record the result of the effect."""
        record = self._open.get(call.ctx.effect_key)
        if record and result.meta.status != "cancelled":
            status: EffectStatus = "done" if result.meta.status == "ok" else "failed"
            await self._publish(replace(record, status=status), call)
            del self._open[record.effect_id]
        return result

    def _kind_of(self, call: PendingCall) -> EffectKind | None:
        """Return the kind of effect of a call outside the workspace; None if it has none."""
        match call.action.effect:
            case "web":
                return "request"
            case "execute" if self._backend == _HOST or (call.verdict and call.verdict.hosts):
                return "command"
            case "external":
                return "message"
            case "execute" if call.action.changed:
                # It is scheduled for later.
                return "message"
            case _:
                return None

    def _identity(self, call: PendingCall) -> str:
        """Return an identity that is the same for the same call of the same step in every run of a chain."""
        name, arguments = call.tool.spec.name, call.action.subject
        if call.action.effect == "external":
            # Called directly or by a search, it is the same tool of the same server.
            name = call.action.tool
        else:
            arguments = json.dumps(encode(call.params), sort_keys=True)
        parts = "\0".join((self._lineage, call.ctx.step_id, name, arguments))
        return f"wl-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"

    def _unresolved(self, identity: str) -> EffectRecord | None:
        return next((record for effect_id, record in self._earlier.items() if effect_id.startswith(identity)), None)

    async def _resolve(self, earlier: EffectRecord, call: PendingCall) -> ToolResult | None:
        """Return the result of an effect that is not repeated; None if the user wants it repeated."""
        if earlier.status == "done":
            del self._earlier[earlier.effect_id]
            return ToolResult(DONE_CALL)
        question = Question(text=IN_DOUBT.format(target=earlier.target), options=(REPEAT, WAS_DONE, SKIP))
        answer = (await self._asker.ask(question, call.ctx) or "").strip().casefold()
        if answer == REPEAT.casefold():
            return None
        is_done = answer == WAS_DONE.casefold()
        if is_done or answer:
            await self._publish(replace(earlier, status="done" if is_done else "skipped"), call)
            del self._earlier[earlier.effect_id]
        return ToolResult(DONE_CALL) if is_done else error_result(UNKNOWN_EFFECT, exit_code=TOOL_RAISED)

    async def _publish(self, record: EffectRecord, call: PendingCall) -> None:
        event = EffectRecorded(
            effect_id=record.effect_id,
            kind=record.kind,
            target=record.target,
            status=record.status,
            safe=record.is_safe,
            call_id=record.call_id,
        )
        await self._channel.publish(event, step_id=call.ctx.step_id, attempt=call.ctx.attempt)
