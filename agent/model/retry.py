"""Retry failed model calls: by the fault table, with exponential backoff, honoring Retry-After."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from agent.model.faults import FaultKind, ModelFault
from agent.model.port import ModelClient, ModelReply, ModelRequest, StreamItem, StreamRestarted, closing_stream

MAX_WAIT_S = 60.0
OnRetry: TypeAlias = Callable[[ModelFault, float], None]


def _random() -> float:
    import random

    return random.random()


class RetryingClient:
    """A ModelClient that retries another one after transient faults."""

    def __init__(
        self,
        inner: ModelClient,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] | None = None,
        on_retry: OnRetry | None = None,
        max_retries: int | None = None,
    ) -> None:
        self._inner = inner
        self._sleep = sleep
        self._jitter = jitter or _random
        self._on_retry = on_retry
        self._max_retries = max_retries

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield fragments, then exactly one ModelReply; after StreamRestarted, discard earlier fragments."""
        retries: Counter[FaultKind] = Counter()
        limit = self._max_retries if request.max_retries is None else request.max_retries
        while True:
            has_fragments = False
            try:
                async with closing_stream(self._inner.stream(request)) as items:
                    async for item in items:
                        has_fragments = has_fragments or not isinstance(item, ModelReply)
                        yield item
                return
            except ModelFault as fault:
                wait = self._backoff(fault, retries[fault.kind])
                if wait is None or (limit is not None and retries.total() >= limit):
                    raise
                retries[fault.kind] += 1
                failed = fault
            if self._on_retry is not None:
                self._on_retry(failed, wait)
            if has_fragments:
                yield StreamRestarted(reason=failed.policy.message)
            await self._sleep(wait)

    async def close(self) -> None:
        """Release connections; may be called twice."""
        await self._inner.close()

    def _backoff(self, fault: ModelFault, retries: int) -> float | None:
        """Return how long to wait before the next attempt, or None to give up."""
        if retries >= fault.policy.retries:
            return None
        spread = 0.75 + 0.5 * self._jitter()
        wait = fault.policy.backoff_s * 2**retries * spread
        if fault.retry_after_s is not None:
            wait = max(fault.retry_after_s, wait)
        return wait if wait <= MAX_WAIT_S else None
