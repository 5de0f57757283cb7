"""A site on its own thread, for tests without an event loop."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.tooling.web.site import Site, SiteResponse


@contextmanager
def serve_in_thread(pages: dict[str, SiteResponse]) -> Iterator[Site]:
    """Serve pages until the block ends."""
    listening, loop, stopping = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    site = Site(pages)

    async def serve() -> None:
        async with site:
            listening.set()
            await stopping.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    listening.wait()
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()
