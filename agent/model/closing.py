"""Streams that are left early are closed at once, not when the garbage is collected."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from agent.model.port import StreamItem


@asynccontextmanager
async def closing(items: AsyncIterator[StreamItem]) -> AsyncGenerator[AsyncIterator[StreamItem], None]:
    """Close a stream at the end of the block, when it can be closed: an iterator need not be a generator."""
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
