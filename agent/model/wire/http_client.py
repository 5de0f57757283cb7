"""The HTTP model client for the OpenAI and Anthropic wire formats."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import cache, partial

from agent.config.settings import Settings
from agent.config.user_dirs import os_environ
from agent.model.faults import ModelFault
from agent.model.http.exchange import HttpExchange, Timeouts, Transports
from agent.model.http.transport_port import HttpRequest
from agent.model.port import CostFunction, ModelRequest, StreamItem
from agent.model.providers import Endpoint, resolve
from agent.model.wire import anthropic_wire, openai_wire
from agent.version import VERSION
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_text import json_encoder

HEADERS = {"User-Agent": f"windlass/{VERSION}", "Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """The functions that write a request in a wire format; `reply_stream` reads the replies."""

    url: Callable[[Endpoint], str]
    headers: Callable[[Endpoint], dict[str, str]]
    body: Callable[[ModelRequest, Endpoint], dict[str, object]]


WIRES: dict[str, WireForm] = {
    "openai": WireForm(url=openai_wire.url, headers=openai_wire.headers, body=openai_wire.body),
    "anthropic": WireForm(url=anthropic_wire.url, headers=anthropic_wire.headers, body=anthropic_wire.body),
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
        self._endpoint_of = cache(partial(resolve, settings=settings))
        self._price = price
        self._on_sent = on_sent
        self._encoder = BodyEncoder()
        self._transports = transports or Transports(os_environ())
        self._timeouts = Timeouts(
            connect_s=settings.connect_timeout_s,
            first_byte_s=settings.first_byte_timeout_s,
            between_chunks_s=settings.chunk_timeout_s,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield fragments, then exactly one ModelReply."""
        endpoint = self._endpoint_of(request.model)
        if endpoint.wire not in WIRES:
            raise ModelFault("unknown_model", f"{request.model} has no provider with a direct client")
        try:
            exchange = HttpExchange(
                self._transports.choose(WIRES[endpoint.wire].url(endpoint)), self._timeouts, self._on_sent
            )
            try:
                response = await exchange.send(self._encode(request, endpoint))
                from agent.model.wire.reply_stream import ReplyStream

                reply = ReplyStream(exchange, endpoint, request, self._price)
                async with aclosing(reply.fragments(response)) as fragments:
                    async for fragment in fragments:
                        yield fragment
            finally:
                await exchange.close()
            yield reply.build()
        except ModelFault as fault:
            from agent.model.fault_mapping import redact_fault

            raise redact_fault(fault, endpoint.key) from None

    def prepare(self, model: str) -> None:
        """Connect to the server of a model in the background; the request itself reports problems."""
        with suppress(ModelFault):
            endpoint = self._endpoint_of(model)
            if wire := WIRES.get(endpoint.wire):
                self._transports.prepare(wire.url(endpoint), self._settings.connect_timeout_s)

    async def close(self) -> None:
        """Release connections; may be called twice."""
        await self._transports.close()

    def _encode(self, request: ModelRequest, endpoint: Endpoint) -> HttpRequest:
        wire = WIRES[endpoint.wire]
        return HttpRequest(
            url=wire.url(endpoint),
            headers={**HEADERS, "Content-Type": "application/json", **wire.headers(endpoint)},
            content=self._encoder.encode(wire.body(request, endpoint)),
        )


class BodyEncoder:
    """Encodes bodies as JSON; the tools, which nearly all requests of a run share, only once."""

    def __init__(self) -> None:
        self._to_json = json_encoder(ensure_ascii=False, separators=(",", ":"))
        self._tools: object = None
        self._tools_json = "null"

    def encode(self, body: Mapping[str, object]) -> bytes:
        """Return a body as UTF-8, its fields in their order."""
        parts: list[str] = []
        others: dict[str, object] = {}
        for name, value in body.items():
            if name == "tools":
                # What comes before them, without its braces.
                parts += [self._to_json(others)[1:-1], f'"tools":{self._encode_tools(value)}']
                others = {}
            else:
                others[name] = value
        parts.append(self._to_json(others)[1:-1])
        # Any tool's output may contain a lone surrogate; no server accepts one.
        return f"{{{','.join(filter(None, parts))}}}".encode("utf-8", "replace")

    def _encode_tools(self, tools: object) -> str:
        if tools != self._tools:
            self._tools, self._tools_json = tools, self._to_json(tools)
        return self._tools_json
