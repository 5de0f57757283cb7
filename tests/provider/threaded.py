"""The provider in a thread, for tests and benchmarks that are not async."""

import asyncio
import threading
from types import TracebackType
from typing import Self

from tests.provider.replies import Pace
from tests.provider.server import Provider, Responder, ScriptedReply


class ThreadedProvider:
    """`with ThreadedProvider() as provider: provider.reply(...)`: the interface of Provider without an event loop."""

    def __init__(
        self, *script: ScriptedReply, otherwise: ScriptedReply | Responder | None = None, pace: Pace | None = None
    ) -> None:
        self._provider = Provider(*script, otherwise=otherwise, pace=pace)
        # Only one thread appends to each of these lists, so no lock is needed.
        self.reply = self._provider.reply
        self.fault = self._provider.fault
        self.drop_script = self._provider.drop_script
        self.requests = self._provider.requests
        self._is_listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """Return the URL for `api_base`."""
        return self._provider.base_url

    @property
    def connections(self) -> int:
        """Return the number of connections so far."""
        return self._provider.connections

    def stop_listening(self) -> None:
        """Refuse connections from now on."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._provider.stop_listening(), self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_listening.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._provider:
            self._is_listening.set()
            await self._stop.wait()
