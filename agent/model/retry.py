"""Asking again: by the fault table, with growing waits, and never past what the provider asked for."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from agent.model.closing import closing
from agent.model.faults import FaultKind, ModelFault
from agent.model.port import ModelClient, ModelReply, ModelRequest, StreamItem, StreamRestarted

MAX_WAIT_S = 60.0
OnRetry: TypeAlias = Callable[[ModelFault, float], None]


class RetryingClient:
    """A ModelClient that asks another one again after faults that may pass."""

    def __init__(
        self,
        inner: ModelClient,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        on_retry: OnRetry | None = None,
    ) -> None:
        self._inner = inner
        self._sleep = sleep
        self._jitter = jitter
        self._on_retry = on_retry

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield fragments, then exactly one ModelReply; StreamRestarted marks fragments that no longer count."""
        made: Counter[FaultKind] = Counter()
        while True:
            was_heard = False
            try:
                async with closing(self._inner.stream(request)) as items:
                    async for item in items:
                        was_heard = was_heard or not isinstance(item, ModelReply)
                        yield item
                return
            except ModelFault as fault:
                wait = self._backoff(fault, made[fault.kind])
                if wait is None:
                    raise
                made[fault.kind] += 1
                failed = fault
            if self._on_retry is not None:
                self._on_retry(failed, wait)
            if was_heard:
                yield StreamRestarted(reason=failed.policy.message)
            await self._sleep(wait)

    async def close(self) -> None:
        """Give back connections; harmless twice."""
        await self._inner.close()

    def _backoff(self, fault: ModelFault, made: int) -> float | None:
        """Return how long to wait before the next attempt, or None when there is none."""
        if made >= fault.policy.retries:
            return None
        spread = 0.75 + 0.5 * self._jitter()
        wait = fault.policy.backoff_s * 2**made * spread
        if fault.retry_after_s is not None:
            wait = max(fault.retry_after_s, wait)
        return wait if wait <= MAX_WAIT_S else None
