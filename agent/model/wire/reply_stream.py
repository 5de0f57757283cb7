"""Reads the reply to a request, in the wire format of its server; loads when the first request has been written."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from typing import Protocol

from agent.model.fault_mapping import fault_from_status
from agent.model.faults import ModelFault
from agent.model.http.exchange import HttpExchange
from agent.model.http.transport_port import HttpResponse
from agent.model.port import CostFunction, ModelReply, ModelRequest
from agent.model.providers import Endpoint
from agent.model.reply.reply_builder import Fragment, ReplyBuilder, join_fragments
from agent.model.wire.anthropic_stream import AnthropicReader
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseEvent, SseParser, parse_json_object

_OK = 200


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


_READERS: dict[str, Callable[[ReplyBuilder], ReplyReader]] = {"openai": OpenAiReader, "anthropic": AnthropicReader}


class ReplyStream:
    """A reply that is arriving: its fragments, then the whole of it."""

    def __init__(self, exchange: HttpExchange, endpoint: Endpoint, request: ModelRequest, price: CostFunction) -> None:
        self._exchange = exchange
        self._endpoint = endpoint
        self._builder = ReplyBuilder(request, price)
        self._reader = _READERS[endpoint.wire](self._builder)

    def build(self) -> ModelReply:
        """Return the reply, once all of its fragments have been read."""
        return self._builder.build()

    async def fragments(self, response: HttpResponse) -> AsyncGenerator[Fragment, None]:
        """Yield what is to be shown. Raises ModelFault, also for a response that is an error."""
        exchange, reader = self._exchange, self._reader
        if response.status != _OK:
            body = await exchange.error_body()
            raise fault_from_status(response.status, body, response.headers, key=self._endpoint.key)
        content_type = response.headers.get("content-type", "")
        if content_type.startswith("application/json"):
            text = (await exchange.read_all()).decode("utf-8", "replace")
            for fragment in reader.read_full(parse_json_object(text)):
                yield fragment
        else:
            parser = SseParser()
            while (chunk := await self._next_chunk()) is not None:
                events = parser.feed(chunk) if chunk else parser.finish()
                for fragment in join_fragments(_read_events(reader, events)):
                    yield fragment
                if reader.is_done or not chunk:
                    break
            if reader.is_done:
                await exchange.drain()
        if "html" in content_type and not reader.is_done:
            raise ModelFault("malformed", "received a web page instead of a reply")
        reader.finish()
        for fragment in self._builder.flush():
            yield fragment

    async def _next_chunk(self) -> bytes | None:
        """Return the next bytes; None for a server that disconnects or hangs after the reply has finished."""
        try:
            return await self._exchange.read_chunk()
        except ModelFault as fault:
            if fault.kind not in ("reset", "between_chunks") or not self._builder.finish_reason:
                raise
            return None


def _read_events(reader: ReplyReader, events: Iterable[SseEvent]) -> Iterator[Fragment]:
    for event in events:
        yield from reader.read(event)
        if reader.is_done:
            return
