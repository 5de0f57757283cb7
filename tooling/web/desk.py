"""The web as the tools of a run share it: one client, made when first needed, closed with the run."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from tooling.web.settings import WebSettings

if TYPE_CHECKING:
    from tooling.web.client import WebClient


class WebDesk:
    """Hands out the run's client; a run that never uses the web never loads one."""

    def __init__(self, settings: WebSettings | None = None) -> None:
        self.settings = settings or WebSettings()
        self._client: asyncio.Future[WebClient] | None = None

    async def client(self) -> "WebClient":
        """Return the client that all tools of the run share."""
        if self._client is None:
            self._client = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._client)

    async def close(self) -> None:
        """Close what was opened."""
        if self._client is not None:
            await (await self._client).close()

    async def _make(self) -> "WebClient":
        # httpx takes longer to import than a screen takes to be drawn.
        await asyncio.to_thread(import_module, "tooling.web.client")
        from tooling.web.client import WebClient

        return WebClient(self.settings)
