"""A site on a thread of its own, for tests of the whole program."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.tooling.web.site import Site, SiteResponse


@contextmanager
def serve_in_thread(pages: dict[str, SiteResponse]) -> Iterator[Site]:
    """Serve pages while the caller, who has no event loop, does something else."""
    listening, loop, over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    site = Site(pages)

    async def serve() -> None:
        async with site:
            listening.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    listening.wait()
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
