"""Waiting for work that must not be cancelled, such as clean-up and the report of a result."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def wait_ignoring_cancel(task: "asyncio.Future[T]") -> None:
    """Wait until the task is done, whether it succeeded or not; re-raise a cancellation afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


async def run_shielded(coroutine: Coroutine[None, None, None]) -> None:
    """Run a coroutine to its end, even if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(coroutine)
    await wait_ignoring_cancel(task)
    task.result()
