"""The amount of reasoning of each model: set by the user, or the provider's default if the model rejects the option."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace

from agent.config.settings import Reasoning, Settings
from agent.model.faults import ModelFault
from agent.model.port import ModelClient, ModelRequest, StreamItem, closing_stream
from tooling.contract.lazy_pattern import lazy_pattern

# Names of the option in rejections by providers: reasoning_effort, thinking, effort.
_ABOUT_REASONING = lazy_pattern(r"reason|think|effort", re.IGNORECASE)


def reasoning_for(model: str, settings: Settings) -> Reasoning | None:
    """Return the amount of reasoning of a model; None leaves it to the provider."""
    own = settings.models.get(model)
    return own.reasoning if own and own.reasoning else settings.reasoning


class ReasoningClient:
    """A ModelClient that adds the amount of reasoning to the requests of another one.

    A request that the model rejects is repeated without it; the user is warned once.
    """

    def __init__(self, inner: ModelClient, settings: Settings, warn: Callable[[str], None] | None = None) -> None:
        self._inner = inner
        self._settings = settings
        self._warn = warn
        self._rejected: set[str] = set()

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield fragments, then exactly one ModelReply."""
        level = request.reasoning or reasoning_for(request.model, self._settings)
        level = None if request.model in self._rejected else level
        asked = request if request.reasoning == level else replace(request, reasoning=level)
        return self._inner.stream(asked) if level is None else self._try(asked, level)

    async def _try(self, request: ModelRequest, level: Reasoning) -> AsyncGenerator[StreamItem, None]:
        has_started = False
        try:
            async with closing_stream(self._inner.stream(request)) as items:
                async for item in items:
                    has_started = True
                    yield item
            return
        except ModelFault as fault:
            if has_started or not _is_rejection(fault):
                raise
            self._reject(request.model, level, fault)
        async with closing_stream(self._inner.stream(replace(request, reasoning=None))) as items:
            async for item in items:
                yield item

    async def close(self) -> None:
        """Release connections; may be called twice."""
        await self._inner.close()

    def _reject(self, model: str, level: Reasoning, fault: ModelFault) -> None:
        # Several steps may have failed at the same time.
        if self._warn is not None and model not in self._rejected:
            self._warn(f"{model} does not take reasoning {level}, so its default applies: {fault.detail}")
        self._rejected.add(model)


def _is_rejection(fault: ModelFault) -> bool:
    return fault.kind == "refused" and _ABOUT_REASONING.search(fault.detail) is not None
