"""The client for all other providers, through litellm: imported late, in the background, and silenced."""

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import ModuleType
from typing import Protocol

from agent.config.settings import Settings
from agent.model.faults import FaultKind, ModelFault
from agent.model.litellm_faults import fault_from_exception
from agent.model.port import CostFunction, ModelRequest, StreamItem
from agent.model.providers import Endpoint, resolve
from agent.model.reply.reply_builder import ReplyBuilder
from agent.model.wire import openai_wire
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseEvent
from tooling.contract.fast_dataclass import dataclass

# Exceptions caused by bugs of the library, whose adapters parse replies carelessly.
_LIBRARY_BUGS = (ValueError, TypeError, LookupError, AttributeError, ImportError, OSError, EOFError, RuntimeError)
_GATEWAY_MODULE = "litellm.responses.mcp.litellm_proxy_mcp_handler"


class Chunk(Protocol):
    """A chunk of a reply in OpenAI's format."""

    def model_dump_json(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The parts of litellm in use: the completion function, its exceptions, its clean-up."""

    complete: Callable[..., Awaitable[AsyncIterator[Chunk]]]
    errors: tuple[type[Exception], ...]
    clean_up: Callable[[], Awaitable[object]]


class LitellmClient:
    """A ModelClient that reaches the provider through litellm."""

    def __init__(self, settings: Settings, price: CostFunction, *, load: Callable[[], Library] | None = None) -> None:
        self._settings = settings
        self._price = price
        self._load = load or import_litellm
        self._loading: Future[Library] | None = None

    def warm_up(self) -> None:
        """Start the import, which takes seconds, in a background thread."""
        if self._loading is None:
            self._loading = Future()
            # A daemon thread, unlike those of the loop's executor, does not delay the end of a run that needs no reply.
            threading.Thread(target=_load_into, args=(self._loading, self._load), daemon=True).start()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield fragments, then exactly one ModelReply."""
        endpoint = resolve(request.model, self._settings)
        library = await self._library(request.model)
        builder = ReplyBuilder(request, self._price)
        reader = OpenAiReader(builder)
        chunks = await self._send(library, request, endpoint)
        try:
            is_first = True
            while chunk := await self._next_chunk(library, chunks, endpoint, is_first=is_first):
                is_first = False
                for fragment in reader.read(SseEvent(name="", data=chunk.model_dump_json())):
                    yield fragment
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        for fragment in builder.flush():
            yield fragment
        reader.finish()
        yield builder.build()

    async def close(self) -> None:
        """Release connections; may be called twice."""
        if self._loading is not None and self._loading.done() and self._loading.exception() is None:
            await self._loading.result().clean_up()

    async def _library(self, model: str) -> Library:
        self.warm_up()
        assert self._loading is not None
        try:
            return await asyncio.wrap_future(self._loading)
        except ImportError as error:
            detail = f"{model} has no direct client, and litellm cannot be imported: {error}"
            raise ModelFault("unknown_model", detail) from error

    async def _send(self, library: Library, request: ModelRequest, endpoint: Endpoint) -> AsyncIterator[Chunk]:
        body = openai_wire.body(request, endpoint)
        # RetryingClient retries: it knows the fault table and the text already streamed.
        options: dict[str, object] = {"num_retries": 0, "max_retries": 0, "drop_params": True}
        options |= {"api_key": endpoint.key or None, "api_base": endpoint.base_url or None}
        limit = self._settings.connect_timeout_s + self._settings.first_byte_timeout_s
        with _map_errors(library, endpoint, "first_byte"):
            async with asyncio.timeout(limit):
                return await library.complete(**body, **options, timeout=limit)

    async def _next_chunk(
        self, library: Library, chunks: AsyncIterator[Chunk], endpoint: Endpoint, *, is_first: bool
    ) -> Chunk | None:
        limit = self._settings.first_byte_timeout_s if is_first else self._settings.chunk_timeout_s
        with _map_errors(library, endpoint, "first_byte" if is_first else "between_chunks"):
            async with asyncio.timeout(limit):
                return await anext(chunks, None)


@contextmanager
def _map_errors(library: Library, endpoint: Endpoint, silence: FaultKind) -> Iterator[None]:
    """Turn exceptions of the library into faults."""
    failures: tuple[type[Exception], ...] = (*library.errors, *_LIBRARY_BUGS)
    try:
        yield
    except TimeoutError as error:
        raise ModelFault(silence) from error
    except failures as error:
        raise fault_from_exception(error, key=endpoint.key, provider=endpoint.provider) from error


def _load_into(loading: Future[Library], load: Callable[[], Library]) -> None:
    # A cancelled waiter must not cancel the import for the others.
    loading.set_running_or_notify_cancel()
    try:
        loading.set_result(load())
    except _LIBRARY_BUGS as error:
        loading.set_exception(ImportError(str(error)))


def import_litellm() -> Library:
    """Import litellm quickly, and silence it."""
    # litellm reads these at import: without the first it fetches its price table from the network, without the
    # second it reads a `.env` file, possibly the workspace's.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        import httpx
        import litellm
        import openai
        from litellm.exceptions import BudgetExceededError
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients
    finally:
        # The import creates half a million permanent objects, which the collector need not scan again.
        gc.freeze()
        if was_enabled:
            gc.enable()
    _silence()
    _replace_gateway()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # It would download a tokenizer to count the tokens of a Llama model.
    litellm.disable_hf_tokenizer_download = True
    return Library(
        complete=litellm.acompletion,
        errors=(openai.OpenAIError, httpx.HTTPError, BudgetExceededError),
        clean_up=close_litellm_async_clients,
    )


def _silence() -> None:
    import logging

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


class _NoGateway:
    """Replaces litellm's gateway to MCP servers: no tool of a request belongs to it."""

    @staticmethod
    def should_use_litellm_mcp_gateway(tools: object) -> bool:
        return False

    # Name in litellm 1.90 and earlier.
    _should_use_litellm_mcp_gateway = should_use_litellm_mcp_gateway


def _replace_gateway() -> None:
    """Keep litellm from importing its gateway, which it does for every request with tools.

    The gateway needs the optional package `mcp`, in another version than our own MCP client.
    """
    stand_in = ModuleType(_GATEWAY_MODULE)
    stand_in.__dict__["LiteLLM_Proxy_MCP_Handler"] = _NoGateway
    sys.modules[_GATEWAY_MODULE] = stand_in
