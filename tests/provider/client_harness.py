"""The real client asked against the provider, with everything a test wants to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.config.settings import Settings
from agent.model.faults import ModelFault
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
    """How one question went: what was heard, how it ended, and the waits between attempts (none was really waited)."""

    items: list[StreamItem] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    fault: ModelFault | None = None

    @property
    def reply(self) -> ModelReply:
        """Return the reply at the end."""
        assert self.fault is None, self.fault
        assert isinstance(self.items[-1], ModelReply)
        return self.items[-1]

    @property
    def text(self) -> str:
        """Return the answer as a listener puts it together from fragments."""
        heard = ""
        for item in self.items:
            heard = "" if isinstance(item, StreamRestarted) else heard
            heard += item.text if isinstance(item, TextDelta) else ""
        return heard


def settings_for(provider: Provider | ThreadedProvider, **changes: float) -> Settings:
    """Return settings that lead to the provider."""
    settings = Settings(api_base=provider.base_url, api_key=KEY, connect_timeout_s=5.0)
    return replace(settings, **{"first_byte_timeout_s": 5.0, "chunk_timeout_s": 5.0, **changes})  # type: ignore[arg-type]


def no_price(model: str, usage: Usage) -> float | None:
    """Know no price."""
    return None


def tool_schema(name: str, properties: Mapping[str, object] | None = None) -> Mapping[str, object]:
    """Return a tool schema as it stands in a request."""
    parameters = {"type": "object", "properties": properties or {}}
    return {"type": "function", "function": {"name": name, "description": f"do {name}", "parameters": parameters}}


async def ask(provider: Provider, request: ModelRequest = REQUEST, **changes: float) -> AskResult:
    """Ask through the retrying client and return how it went."""
    asked = AskResult()

    async def wait(seconds: float) -> None:
        asked.waits.append(seconds)

    client = RetryingClient(HttpModelClient(settings_for(provider, **changes), no_price), wait, lambda: 0.5)
    try:
        async for item in client.stream(request):
            asked.items.append(item)
    except ModelFault as fault:
        asked.fault = fault
    finally:
        await client.close()
    return asked
