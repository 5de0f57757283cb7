"""Waiting for what must not be cut short: the tidying up after an interruption, and the telling of an end."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def wait_ignoring_cancel(task: "asyncio.Future[T]") -> None:
    """Return when the task has ended, well or not; interruptions meanwhile are raised afterwards."""
    interruption: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interruption = error
    if interruption:
        raise interruption


async def run_shielded(deed: Coroutine[None, None, None]) -> None:
    """Do something whole, even when interrupted in the middle of it."""
    doing = asyncio.ensure_future(deed)
    await wait_ignoring_cancel(doing)
    doing.result()
