"""The HTTP model client for the OpenAI and Anthropic wire formats."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Protocol

from agent.config.settings import Settings
from agent.config.user_dirs import os_environ
from agent.model.fault_mapping import fault_from_status, redact_fault
from agent.model.faults import ModelFault
from agent.model.http.exchange import HttpExchange, Timeouts, Transports
from agent.model.http.transport_port import HttpRequest
from agent.model.port import CostFunction, ModelRequest, StreamItem
from agent.model.providers import Endpoint, resolve
from agent.model.reply.reply_builder import Fragment, ReplyBuilder
from agent.model.wire import anthropic_wire, openai_wire
from agent.model.wire.anthropic_stream import AnthropicReader
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseEvent, SseParser, parse_json_object
from agent.version import VERSION
from tooling.contract.fast_dataclass import dataclass

_OK = 200
HEADERS = {"User-Agent": f"windlass/{VERSION}", "Accept": "*/*", "Accept-Encoding": "identity"}


class ReplyReader(Protocol):
    """Parses a reply in one wire format into a builder."""

    is_done: bool

    def read(self, event: SseEvent) -> list[Fragment]:
        """Parse one event; return the fragments to show."""
        ...

    def read_full(self, data: Mapping[str, object]) -> list[Fragment]:
        """Parse a reply that was not streamed."""
        ...

    def finish(self) -> None:
        """Raise ModelFault if the stream ended before the reply was complete."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """The functions that define a wire format."""

    url: Callable[[Endpoint], str]
    headers: Callable[[Endpoint], dict[str, str]]
    body: Callable[[ModelRequest, Endpoint], dict[str, object]]
    reader: Callable[[ReplyBuilder], ReplyReader]


WIRES: dict[str, WireForm] = {
    "openai": WireForm(url=openai_wire.url, headers=openai_wire.headers, body=openai_wire.body, reader=OpenAiReader),
    "anthropic": WireForm(
        url=anthropic_wire.url, headers=anthropic_wire.headers, body=anthropic_wire.body, reader=AnthropicReader
    ),
}


class HttpModelClient:
    """A ModelClient over HTTP; one instance per run keeps its connections alive."""

    def __init__(
        self,
        settings: Settings,
        price: CostFunction,
        *,
        transports: Transports | None = None,
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._price = price
        self._on_sent = on_sent
        self._transports = transports or Transports(os_environ())
        self._timeouts = Timeouts(
            connect_s=settings.connect_timeout_s,
            first_byte_s=settings.first_byte_timeout_s,
            between_chunks_s=settings.chunk_timeout_s,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield fragments, then exactly one ModelReply."""
        endpoint = resolve(request.model, self._settings)
        if endpoint.wire not in WIRES:
            raise ModelFault("unknown_model", f"{request.model} has no provider with a direct client")
        builder = ReplyBuilder(request, self._price)
        try:
            async with aclosing(self._fragments(request, endpoint, builder)) as fragments:
                async for fragment in fragments:
                    yield fragment
            yield builder.build()
        except ModelFault as fault:
            raise redact_fault(fault, endpoint.key) from None

    def prepare(self, model: str) -> None:
        """Connect to the server of a model in the background; a problem is reported by the request."""
        with suppress(ModelFault):
            endpoint = resolve(model, self._settings)
            if wire := WIRES.get(endpoint.wire):
                self._transports.prepare(wire.url(endpoint), self._settings.connect_timeout_s)

    async def close(self) -> None:
        """Release connections; may be called twice."""
        await self._transports.close()

    async def _fragments(
        self, request: ModelRequest, endpoint: Endpoint, builder: ReplyBuilder
    ) -> AsyncGenerator[Fragment, None]:
        wire = WIRES[endpoint.wire]
        url = wire.url(endpoint)
        exchange = HttpExchange(self._transports.choose(url), self._timeouts, self._on_sent)
        try:
            headers = {**HEADERS, "Content-Type": "application/json", **wire.headers(endpoint)}
            content = _encode(wire.body(request, endpoint))
            response = await exchange.send(HttpRequest(url=url, headers=headers, content=content))
            if response.status != _OK:
                body = await exchange.error_body()
                raise fault_from_status(response.status, body, response.headers, key=endpoint.key)
            kind = response.headers.get("content-type", "")
            async with aclosing(_read_reply(exchange, wire.reader(builder), builder, kind)) as fragments:
                async for fragment in fragments:
                    yield fragment
            for fragment in builder.flush():
                yield fragment
        finally:
            await exchange.close()


async def _read_reply(
    exchange: HttpExchange, reader: ReplyReader, builder: ReplyBuilder, content_type: str
) -> AsyncGenerator[Fragment, None]:
    if content_type.startswith("application/json"):
        text = (await exchange.read_all()).decode("utf-8", "replace")
        for fragment in reader.read_full(parse_json_object(text)):
            yield fragment
    else:
        async with aclosing(_events_until_finished(exchange, builder)) as events:
            async for event in events:
                for fragment in reader.read(event):
                    yield fragment
                if reader.is_done:
                    break
        if reader.is_done:
            await exchange.drain()
    if "html" in content_type and not reader.is_done:
        raise ModelFault("malformed", "received a web page instead of a reply")
    reader.finish()


async def _events_until_finished(exchange: HttpExchange, builder: ReplyBuilder) -> AsyncGenerator[SseEvent, None]:
    """Yield events; ignore a server that disconnects or hangs after the reply has finished."""
    try:
        async with aclosing(_events(exchange)) as events:
            async for event in events:
                yield event
    except ModelFault as fault:
        if fault.kind not in ("reset", "between_chunks") or not builder.finish_reason:
            raise


async def _events(exchange: HttpExchange) -> AsyncGenerator[SseEvent, None]:
    parser = SseParser()
    async with aclosing(exchange.chunks()) as chunks:
        async for chunk in chunks:
            for event in parser.feed(chunk):
                yield event
    for event in parser.finish():
        yield event


def _encode(body: Mapping[str, object]) -> bytes:
    # Any tool's output may contain a lone surrogate; no server accepts one.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
