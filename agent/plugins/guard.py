"""Keeps output printed by plugins away from stdout, which carries only answers and JSON."""

import asyncio
import contextlib
import io
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import TextIO, TypeVar

T = TypeVar("T")
# The text printed by the plugin in this context.
_printed: ContextVar[io.StringIO | None] = ContextVar("printed_by_plugin", default=None)
_MAX_SHOWN_CHARS = 80
PRINTED = "it printed to stdout, which is kept for answers: {text!r}"


class PluginTimeout(Exception):
    """The plugin exceeded its time limit."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"it took longer than {limit_s:g} s")


class _GuardedStdout(io.TextIOBase):
    """Stdout for all code except plugins, whose output is collected."""

    def __init__(self, real: TextIO) -> None:
        self._real = real

    def _target(self) -> TextIO:
        return _printed.get() or self._real

    def write(self, text: str) -> int:
        return self._target().write(text)

    def flush(self) -> None:
        self._target().flush()

    def isatty(self) -> bool:
        return self._real.isatty()

    def fileno(self) -> int:
        return self._real.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._real.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._real.errors

    @property
    def buffer(self) -> object:
        """Return the underlying binary stream; a plugin gets one that discards everything."""
        return io.BytesIO() if _printed.get() else self._real.buffer

    def reconfigure(self, **options: object) -> None:
        self._real.reconfigure(**options)  # type: ignore[attr-defined]


def guard_stdout() -> None:
    """Install the guard once."""
    if not isinstance(sys.stdout, _GuardedStdout) and sys.stdout is not None:
        sys.stdout = _GuardedStdout(sys.stdout)


@contextlib.contextmanager
def collect_prints() -> Iterator[io.StringIO]:
    """Collect the output printed by code in this context."""
    text = io.StringIO()
    token = _printed.set(text)
    try:
        yield text
    finally:
        _printed.reset(token)


@contextlib.contextmanager
def _warn_of_prints(warn: Callable[[str], None]) -> Iterator[None]:
    with collect_prints() as text:
        try:
            yield
        finally:
            if said := text.getvalue().strip():
                warn(PRINTED.format(text=said.splitlines()[0][:_MAX_SHOWN_CHARS]))


def call_in_time(call: Callable[[], T], limit_s: float, warn: Callable[[str], None]) -> T:
    """Call a plugin's code in a thread that is abandoned after the limit; exceptions propagate."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with _warn_of_prints(warn):
                results.append(call())
        except BaseException as error:  # noqa: BLE001 (a plugin may even raise SystemExit)
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="plugin")
    thread.start()
    thread.join(limit_s)
    if errors:
        raise errors[0]
    if not results:
        raise PluginTimeout(limit_s)
    return results[0]


async def await_in_time(work: Awaitable[T], limit_s: float, warn: Callable[[str], None]) -> T:
    """Await a plugin's method for at most the limit; exceptions propagate."""
    with _warn_of_prints(warn):
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError as error:
            raise PluginTimeout(limit_s) from error
