"""Asking the providers: in order, each with its own clock and one retry, the next one when one fails."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import field, replace

from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.search.errors import SearchFault, of_web
from tooling.web.search.merge import merged
from tooling.web.search.providers import PROVIDERS, usable
from tooling.web.search.types import Access, Hit, Query, Reply
from tooling.web.settings import SearchProvider, WebSettings

Send = Callable[[WebRequest], Awaitable[WebResponse]]
_MOST_BYTES = 2_000_000


@dataclass(slots=True, kw_only=True)
class Found:
    """What came of a search: who was asked, what each found or why it could not, and what it costs."""

    hits: tuple[Hit, ...] = ()
    answered: list[SearchProvider] = field(default_factory=list)
    failed: dict[SearchProvider, str] = field(default_factory=dict)
    cost_usd: float = 0.0


class Search:
    """Searches with the providers that are set up; `fanout` of them at the same time."""

    def __init__(self, settings: WebSettings, send: Send) -> None:
        self._settings = settings
        self._send = send

    async def find(self, query: Query) -> Found:
        """Ask until as many providers as wanted have found something, or all have been asked."""
        found = Found()
        places = usable(self._settings)
        waiting = deque(places.items())
        replies: dict[SearchProvider, Reply] = {}

        async def ask_along() -> None:
            """Go down the line until one finds something."""
            while waiting:
                name, access = waiting.popleft()
                try:
                    reply = await self._ask(name, access, query)
                except SearchFault as fault:
                    found.failed[name] = str(fault)
                    continue
                replies[name] = reply
                if reply.hits:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.search_fanout):
                group.create_task(ask_along())
        found.answered = [name for name in places if name in replies]
        found.hits = merged([(name, replies[name].hits) for name in found.answered], query.count)
        found.cost_usd = sum(reply.cost_usd for reply in replies.values())
        return found

    async def _ask(self, name: SearchProvider, access: Access, query: Query) -> Reply:
        """Ask one provider, and once more when its fault may pass."""
        try:
            return await self._ask_once(name, access, query)
        except SearchFault as fault:
            if fault.wait_s is None:
                raise
            await asyncio.sleep(fault.wait_s)
        return await self._ask_once(name, access, query)

    async def _ask_once(self, name: SearchProvider, access: Access, query: Query) -> Reply:
        provider = PROVIDERS[name]
        limit_s = self._settings.search_timeout_s or provider.timeout_s
        request = replace(provider.request(query, access), timeout_s=limit_s, max_bytes=_MOST_BYTES)
        try:
            response = await self._send(request)
        except WebFault as fault:
            raise of_web(fault) from fault
        return provider.read(response)
