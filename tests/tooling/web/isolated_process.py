"""A site in a process of its own, so that serving it takes none of the time that is measured."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.tooling.web.site import Site, SiteResponse


@contextmanager
def serve_in_process(pages: dict[str, bytes]) -> Iterator[str]:
    """Serve pages that never change; yield the address before their paths."""
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
        answers: dict[str, SiteResponse] = dict(pages)
        async with Site(answers) as site:
            pipe.send(site.url(""))
            await asyncio.Event().wait()

    asyncio.run(serve())
