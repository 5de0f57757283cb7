"""A site in its own process, so that serving it does not count towards what is measured."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.tooling.web.site import Site, SiteResponse


@contextmanager
def serve_in_process(pages: dict[str, bytes]) -> Iterator[str]:
    """Serve static pages; yield the base URL."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there, pages), daemon=True)
    process.start()
    try:
        yield str(here.recv())
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, pages: dict[str, bytes]) -> None:
    async def serve() -> None:
        responses: dict[str, SiteResponse] = dict(pages)
        async with Site(responses) as site:
            pipe.send(site.url(""))
            await asyncio.Event().wait()

    asyncio.run(serve())
