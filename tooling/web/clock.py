"""The time of one request, which stands still while somebody else is waited for."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from tooling.web.http.messages import WebFault


class RequestClock:
    """Counts the seconds of a request and nothing else."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the clock stand still: for a person's answer, or one's turn at a busy host."""
        loop = asyncio.get_running_loop()
        end = self._timeout.when()
        left_s = None if end is None else end - loop.time()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            if left_s is not None and not self._timeout.expired():
                self._timeout.reschedule(loop.time() + left_s)


@asynccontextmanager
async def request_clock(limit_s: float) -> AsyncIterator[RequestClock]:
    """Open a clock for one request; when it runs out, a WebFault says so."""
    timeout = asyncio.timeout(limit_s)
    try:
        async with timeout:
            yield RequestClock(timeout)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise WebFault("timeout", f"the answer took longer than {limit_s:g} s") from error
