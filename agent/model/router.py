"""The model client of a run: routes each request to the client that serves its model.

Clients are imported when opened: a run usually needs one of them, and importing them is slow.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.config.settings import MODEL_SETTINGS, ModelSettings, Settings
from agent.model.deadline import Deadline
from agent.model.faults import ModelFault
from agent.model.port import ModelClient, ModelRequest, StreamItem, closing_stream
from agent.model.prices import PriceTable
from agent.model.providers import resolve
from agent.model.reasoning import ReasoningClient
from agent.model.retry import OnRetry, RetryingClient
from agent.model.vision import Vision
from agent.vocabulary.errors import UsageError
from agent.vocabulary.usage import Usage

if TYPE_CHECKING:
    from agent.model.litellm_client import LitellmClient
    from agent.model.wire.http_client import HttpModelClient

SCRIPT_PREFIX = "script:"
UNPRICED = (
    "the price of {model} is unknown, so it counts as free and a cost limit cannot stop it; "
    'set input_price and output_price under [models."{model}"]'
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MIN_SECRET_CHARS = 6


class ModelRouter:
    """A ModelClient for all models, with retries and optional recording or replay."""

    def __init__(
        self,
        settings: Settings,
        *,
        prices: PriceTable | None = None,
        record: Path | None = None,
        replay: Path | None = None,
        volatile: Mapping[str, str] | None = None,
        redact: Callable[[str], str] = str,
        on_retry: OnRetry | None = None,
        warn: Callable[[str], None] | None = None,
        read_image: Callable[[str], bytes | None] = lambda name: None,
        plugin_models: Mapping[str, Callable[[], ModelClient]] | None = None,
    ) -> None:
        if record and replay:
            raise UsageError("--record and --replay exclude each other")
        prices = prices or PriceTable()
        self.vision = Vision(settings, prices, read_image)
        # Set when the first request has been written: work needed only afterwards waits for it.
        self.request_sent = asyncio.Event()
        self._pool = ClientPool(settings, prices, self.vision, warn, plugin_models or {}, on_sent=self.request_sent.set)
        self._is_replay = replay is not None
        self._reply_timeout_s = settings.reply_timeout_s
        self._client: ModelClient
        clean = _key_redactor(settings, redact)
        if replay:
            self._client = _open_replay(replay, volatile or {}, clean)
            return
        self._pool.open_scripts()
        self._client = RetryingClient(
            ReasoningClient(self._pool, settings, warn), on_retry=on_retry, max_retries=settings.max_retries
        )
        if record:
            self._client = _open_recording(self._client, record, volatile or {}, clean)

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield fragments, then exactly one ModelReply; raises ModelFault past the time limit of a reply."""
        if self._is_replay:
            self.request_sent.set()
        return _within(self._reply_timeout_s, self._client.stream(request))

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of a call, None if unknown. A replay costs nothing."""
        return 0.0 if self._is_replay else self._pool.cost(model, usage)

    def warm_up(self) -> None:
        """Start slow imports that the configured models need."""
        self._pool.warm_up()

    async def close(self) -> None:
        """Close all open clients; may be called twice."""
        await self._client.close()


class ClientPool:
    """Opens each client with its first request, and shares it."""

    def __init__(
        self,
        settings: Settings,
        prices: PriceTable,
        vision: Vision,
        warn: Callable[[str], None] | None = None,
        plugin_models: Mapping[str, Callable[[], ModelClient]] | None = None,
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        # Queried several times for each request; the settings of a run do not change.
        self._endpoint_of = cache(partial(resolve, settings=settings))
        self._warn = warn
        self._on_sent = on_sent
        self._unpriced: set[str] = set()
        self._prices = prices
        self._vision = vision
        self._http: HttpModelClient | None = None
        self._litellm: LitellmClient | None = None
        self._scripts: dict[str, ModelClient] = {}
        self._plugin_models = plugin_models or {}
        self._of_plugins: dict[str, ModelClient] = {}

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Pass the request to the client that serves its model, with its images."""
        return self._client_for(request.model).stream(self._vision.fill_in(request))

    def open_scripts(self) -> None:
        """Read the configured scripts, so that a broken one fails before the first request."""
        for model in self._configured_models():
            if model.startswith(SCRIPT_PREFIX):
                self._open_script(model)

    def warm_up(self) -> None:
        """Connect to the server of the run's model, or start importing litellm if a configured model needs it."""
        if any(self._needs_litellm(model) for model in self._configured_models()):
            self._open_litellm().warm_up()
        model = self._settings.model
        if model and not model.startswith(SCRIPT_PREFIX) and not self._needs_litellm(model):
            self._open_http().prepare(model)

    async def close(self) -> None:
        for client in (self._http, self._litellm, *self._of_plugins.values()):
            if client is not None:
                await client.close()

    def _configured_models(self) -> set[str]:
        settings = self._settings
        return {model for name in MODEL_SETTINGS if (model := str(getattr(settings, name)))}

    def _client_for(self, model: str) -> ModelClient:
        if model.startswith(SCRIPT_PREFIX):
            self._on_sent()
            return self._open_script(model)
        if (prefix := model.partition("/")[0]) in self._plugin_models:
            if prefix not in self._of_plugins:
                self._of_plugins[prefix] = self._plugin_models[prefix]()
            return self._of_plugins[prefix]
        if self._endpoint_of(model).wire == "litellm":
            return self._open_litellm()
        return self._open_http()

    def _needs_litellm(self, model: str) -> bool:
        if model.startswith(SCRIPT_PREFIX) or model.partition("/")[0] in self._plugin_models:
            return False
        try:
            return self._endpoint_of(model).wire == "litellm"
        except ModelFault:
            return False

    def _open_http(self) -> "HttpModelClient":
        if self._http is None:
            from agent.model.wire.http_client import HttpModelClient

            self._http = HttpModelClient(self._settings, self.cost, on_sent=self._on_sent)
        return self._http

    def _open_litellm(self) -> "LitellmClient":
        if self._litellm is None:
            from agent.model.litellm_client import LitellmClient

            self._litellm = LitellmClient(self._settings, self.cost)
        return self._litellm

    def _open_script(self, model: str) -> ModelClient:
        if model not in self._scripts:
            from agent.model.recorded.script import ScriptedModel

            self._scripts[model] = ScriptedModel(Path(model.removeprefix(SCRIPT_PREFIX)).expanduser())
        return self._scripts[model]

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of a call: at the user's price, else at the list price wherever the model is served.

        A model without a price is free on this machine; elsewhere its cost is unknown, None.
        """
        own = self._settings.models.get(model)
        if own and (own.input_price is not None or own.output_price is not None):
            return self._own_cost(model, own, usage)
        cost = self._prices.cost(model, usage)
        if cost is not None or not self._is_on_this_machine(model):
            return cost
        self._warn_unpriced(model)
        return 0.0

    def _own_cost(self, model: str, own: ModelSettings, usage: Usage) -> float:
        parts = (
            (own.input_price, usage.input_tokens, replace(usage, output_tokens=0)),
            (own.output_price, usage.output_tokens, Usage(output_tokens=usage.output_tokens)),
        )
        return sum(
            (self._prices.cost(model, part) or 0.0) if price is None else price * tokens / 1_000_000
            for price, tokens, part in parts
        )

    def _is_on_this_machine(self, model: str) -> bool:
        try:
            return urlsplit(self._endpoint_of(model).base_url).hostname in _LOOPBACK
        except ModelFault:
            # Without a key there are no calls.
            return False

    def _warn_unpriced(self, model: str) -> None:
        if self._warn is None or self._settings.max_budget_usd is None or model in self._unpriced:
            return
        self._unpriced.add(model)
        self._warn(UNPRICED.format(model=model))


async def _within(limit_s: float, items: AsyncIterator[StreamItem]) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of a stream up to its time limit: a server that only keeps the connection alive never ends."""
    deadline = Deadline(asyncio.get_running_loop().time() + limit_s)
    try:
        async with closing_stream(items):
            while True:
                try:
                    with deadline:
                        item = await anext(items)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise ModelFault("time_limit", f"{limit_s:g} s") from error
                yield item
    finally:
        deadline.close()


def _open_replay(path: Path, volatile: Mapping[str, str], clean: Callable[[str], str]) -> ModelClient:
    from agent.model.recorded.replaying import ReplayingClient

    return ReplayingClient(path, volatile, clean)


def _open_recording(
    inner: ModelClient, path: Path, volatile: Mapping[str, str], clean: Callable[[str], str]
) -> ModelClient:
    from agent.model.recorded.recording import RecordingClient

    return RecordingClient(inner, path, volatile, clean)


def _key_redactor(settings: Settings, redact: Callable[[str], str]) -> Callable[[str], str]:
    keys = [key for key in (settings.api_key, *settings.keys.values()) if len(key) >= _MIN_SECRET_CHARS]

    def clean(text: str) -> str:
        for key in keys:
            text = text.replace(key, "[key]")
        return redact(text)

    return clean
