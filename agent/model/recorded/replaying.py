"""Replay model exchanges from a cassette (`--replay FILE`), without network or key."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from hashlib import sha256
from pathlib import Path

from agent.model.faults import ModelFault
from agent.model.port import CallDelta, ModelReply, ModelRequest, ReasoningDelta, StreamItem, TextDelta
from agent.model.recorded.cassette import (
    RecordedExchange,
    RecordedRequest,
    encode_without_defaults,
    read_cassette,
    record_request,
)
from agent.model.recorded.normal_form import Placeholders, map_strings, normalize_text
from agent.model.recorded.script import split_text
from agent.vocabulary.message import Message
from tooling.contract.json_codec import decode

_FRAGMENT_COUNT = 4
_COMPARED_CHARS = 2000
_DIFF_LINES = 20
_LINE_WIDTH = 160


class ReplayingClient:
    """Finds the recorded exchange for each request by its content, independent of folder and date."""

    def __init__(self, path: Path, volatile: Mapping[str, str], redact: Callable[[str], str] = str) -> None:
        self._path = path
        self._placeholders = Placeholders(volatile)
        self._redact = redact
        self._recorded = [(self._normalize(exchange.request), exchange) for exchange in read_cassette(path)]
        self._remaining: dict[str, deque[RecordedExchange]] = {}
        for normal, exchange in self._recorded:
            self._remaining.setdefault(_digest(normal), deque()).append(exchange)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield the recorded reply in fragments, or raise the recorded fault."""
        exchange = self._next_exchange(request)
        if exchange.reply is None:
            fault = exchange.fault
            raise ModelFault(fault.kind, fault.detail) if fault else ModelFault("script", "an empty exchange")
        message = decode(
            Message, map_strings(encode_without_defaults(exchange.reply.message), self._placeholders.restore)
        )
        if message.reasoning:
            yield ReasoningDelta(text=message.reasoning)
        for part in split_text(message.content, _FRAGMENT_COUNT):
            yield TextDelta(text=part)
        for index, call in enumerate(message.tool_calls):
            yield CallDelta(index=index, name=call.name, text="")
            for part in split_text(json.dumps(dict(call.arguments), ensure_ascii=False), _FRAGMENT_COUNT):
                yield CallDelta(index=index, name=call.name, text=part)
        reply = exchange.reply
        yield ModelReply(message=message, usage=reply.usage, model=request.model, finish_reason=reply.finish_reason)

    async def close(self) -> None:
        """Do nothing: the cassette was read at the start."""

    def _next_exchange(self, request: ModelRequest) -> RecordedExchange:
        normal = self._normalize(record_request(request))
        remaining = self._remaining.get(_digest(normal))
        if remaining:
            return remaining.popleft()
        origin = f"{request.purpose}{f', step {request.step_id}' if request.step_id else ''}"
        if remaining is not None:
            raise ModelFault("script", f"all replies in {self._path} to this request ({origin}) were already used")
        raise ModelFault(
            "script", f"no request in {self._path} matches this one ({origin}); {self._describe_nearest(normal)}"
        )

    def _normalize(self, request: RecordedRequest) -> Mapping[str, object]:
        messages = [_comparable(message) for message in request.messages]
        # Tools are not compared: a plugin installed later must not invalidate the cassette.
        request_data = {"purpose": request.purpose, "messages": messages}
        normal = map_strings(request_data, lambda text: normalize_text(self._redact(self._placeholders.insert(text))))
        return normal if isinstance(normal, dict) else request_data

    def _describe_nearest(self, normal: Mapping[str, object]) -> str:
        from difflib import SequenceMatcher

        recorded = [other for other, _ in self._recorded]
        candidates = [other for other in recorded if other["purpose"] == normal["purpose"]] or recorded
        if not candidates:
            return "the cassette is empty"
        wanted = _render_request(normal)[-_COMPARED_CHARS:]
        return _describe_difference(
            max(
                candidates,
                key=lambda other: SequenceMatcher(
                    None, _render_request(other)[-_COMPARED_CHARS:], wanted
                ).quick_ratio(),
            ),
            normal,
        )


def _comparable(message: Message) -> Mapping[str, object]:
    """Return the parts of a message to compare: not ids, not reasoning."""
    calls = [{"name": call.name, "arguments": encode_without_defaults(call.arguments)} for call in message.tool_calls]
    images = {"images": [image.sha256 for image in message.images]} if message.images else {}
    return {"role": message.role, "content": message.content, "calls": calls, **images}


def _digest(normal: Mapping[str, object]) -> str:
    return sha256(json.dumps(normal, sort_keys=True).encode()).hexdigest()


def _render_messages(normal: Mapping[str, object]) -> list[str]:
    messages = normal["messages"]
    return [_render_message(message) for message in messages] if isinstance(messages, list) else []


def _render_message(message: Mapping[str, object]) -> str:
    calls = f"\ncalls: {json.dumps(message['calls'], sort_keys=True)}" if message["calls"] else ""
    return f"{message['role']}: {message['content']}{calls}"


def _render_request(normal: Mapping[str, object]) -> str:
    return "\n".join(_render_messages(normal))


def _describe_difference(recorded: Mapping[str, object], request: Mapping[str, object]) -> str:
    from difflib import unified_diff

    if recorded["purpose"] != request["purpose"]:
        return f"no recorded request has this purpose, the nearest is for {recorded['purpose']}"
    old, new = _render_messages(recorded), _render_messages(request)
    pairs = zip(old + [""] * len(new), new + [""] * len(old), strict=True)
    index, (was, now) = next((index, pair) for index, pair in enumerate(pairs) if pair[0] != pair[1])
    diff = unified_diff(was.splitlines(), now.splitlines(), "recorded", "asked", lineterm="", n=1)
    shown = [line[:_LINE_WIDTH] for line in diff]
    rest = [f"… {len(shown) - _DIFF_LINES} more lines"] if len(shown) > _DIFF_LINES else []
    return "\n".join([f"nearest recorded request differs in message {index + 1}:", *shown[:_DIFF_LINES], *rest])
