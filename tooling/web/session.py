"""The web client and fetcher that the tools of a run share, created on first use and closed with the run."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from tooling.contract.action import ActionGate
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolResult
from tooling.contract.web import FetchCall
from tooling.web.settings import WebSettings

if TYPE_CHECKING:
    from tooling.web.addresses.url_check import Resolver
    from tooling.web.documents.worker_pool import WorkerPool
    from tooling.web.fetch import Fetcher
    from tooling.web.http.web_client import WebClient
    from tooling.web.network_attempt import OnAttempt


class WebSession:
    """The run's web client and page fetcher; a run that never uses the web never imports them."""

    def __init__(
        self,
        settings: WebSettings | None = None,
        *,
        on_attempt: "OnAttempt | None" = None,
        resolver: "Resolver | None" = None,
    ) -> None:
        self.settings = settings or WebSettings()
        self._on_attempt = on_attempt
        self._resolver = resolver
        self._client: asyncio.Future[WebClient] | None = None
        self._fetcher: asyncio.Future[Fetcher] | None = None
        self._workers: WorkerPool | None = None

    async def client(self) -> "WebClient":
        """Return the client shared by all tools of the run."""
        if self._client is None:
            self._client = asyncio.ensure_future(self._new_client())
        return await asyncio.shield(self._client)

    async def fetcher(self) -> "Fetcher":
        """Return the fetcher shared by all tools of the run."""
        if self._fetcher is None:
            self._fetcher = asyncio.ensure_future(self._new_fetcher())
        return await asyncio.shield(self._fetcher)

    async def fetch_page(self, call: FetchCall, ctx: ExecCtx, gate: ActionGate) -> ToolResult:
        """Fetch a page; `gate` decides about redirects to other hosts. Raises ToolError."""
        # Imported with the first page, in a thread to keep the event loop responsive.
        await asyncio.to_thread(import_module, "tooling.web.fetch_result")
        from tooling.web.fetch_result import fetch_page

        return await fetch_page(call, await self.fetcher(), ctx, gate, max_chars=self.settings.max_chars)

    async def search(self, text: str, count: int) -> ToolResult:
        """Search with the configured providers. Raises ToolError."""
        # The providers are imported with the first search.
        from tooling.web.search.search import search
        from tooling.web.search.types import SearchQuery

        return await search(SearchQuery(text=text, count=count), self.settings, self.client)

    async def close(self) -> None:
        """Stop the worker processes and close all connections."""
        if self._fetcher is not None:
            await asyncio.wait({self._fetcher})
        if self._workers is not None:
            await self._workers.close()
        if self._client is not None:
            await (await self._client).close()

    async def _new_client(self) -> "WebClient":
        # Importing httpx takes longer than drawing a frame, so it must not block the event loop.
        await asyncio.to_thread(import_module, "tooling.web.http.web_client")
        from tooling.web.http.web_client import WebClient

        return WebClient(self.settings, on_attempt=self._on_attempt, resolver=self._resolver)

    async def _new_fetcher(self) -> "Fetcher":
        client = await self.client()
        await asyncio.to_thread(import_module, "tooling.web.fetch")
        from tooling.web.documents.worker_pool import WorkerPool
        from tooling.web.fetch import Fetcher

        self._workers = WorkerPool()
        return Fetcher(client, self.settings, self._workers, resolver=self._resolver)
