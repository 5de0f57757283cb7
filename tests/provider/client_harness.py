"""Calls the provider with the real model client and records the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.http.exchange import Transports
from agent.model.http.httpx_transport import HttpxTransport
from agent.model.http.transport_port import Transport
from agent.model.port import ModelReply, ModelRequest, StreamItem, StreamRestarted, TextDelta
from agent.model.retry import RetryingClient
from agent.model.wire.http_client import HttpModelClient
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tests.provider.server import Provider
from tests.provider.threaded import ThreadedProvider

KEY = "sk-very-secret-0123456789"
REQUEST = ModelRequest(model="openai/test-model", messages=(Message(role="user", content="hi"),))
MODELS = ("openai/test-model", "anthropic/test-model")


@dataclass(slots=True, kw_only=True)
class AskResult:
    """The stream items of one request, its fault, and the waits between attempts (recorded, not slept)."""

    items: list[StreamItem] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    fault: ModelFault | None = None

    @property
    def reply(self) -> ModelReply:
        """Return the final reply."""
        assert self.fault is None, self.fault
        assert isinstance(self.items[-1], ModelReply)
        return self.items[-1]

    @property
    def text(self) -> str:
        """Return the answer assembled from its fragments."""
        text = ""
        for item in self.items:
            text = "" if isinstance(item, StreamRestarted) else text
            text += item.text if isinstance(item, TextDelta) else ""
        return text


def settings_for(provider: Provider | ThreadedProvider, **changes: float) -> Settings:
    """Return settings that point to the provider."""
    settings = Settings(api_base=provider.base_url, api_key=KEY, connect_timeout_s=5.0)
    return replace(settings, **{"first_byte_timeout_s": 5.0, "chunk_timeout_s": 5.0, **changes})  # type: ignore[arg-type]


def no_price(model: str, usage: Usage) -> float | None:
    return None


def tool_schema(name: str, properties: Mapping[str, object] | None = None) -> Mapping[str, object]:
    """Return a tool schema in the form of a request."""
    parameters = {"type": "object", "properties": properties or {}}
    return {"type": "function", "function": {"name": name, "description": f"do {name}", "parameters": parameters}}


class HttpxOnly(Transports):
    """Transports for a test that wants httpx whatever the URL."""

    def __init__(self) -> None:
        super().__init__({})
        self._httpx = HttpxTransport({}, "")

    def choose(self, url: str) -> Transport:
        return self._httpx

    async def close(self) -> None:
        await self._httpx.close()


async def ask(
    provider: Provider, request: ModelRequest = REQUEST, *, transports: Transports | None = None, **changes: float
) -> AskResult:
    """Send a request through the retrying client and return the outcome."""
    result = AskResult()

    async def wait(seconds: float) -> None:
        result.waits.append(seconds)

    http = HttpModelClient(settings_for(provider, **changes), no_price, transports=transports)
    client = RetryingClient(http, wait, lambda: 0.5)
    try:
        async for item in client.stream(request):
            result.items.append(item)
    except ModelFault as fault:
        result.fault = fault
    finally:
        await client.close()
    return result
