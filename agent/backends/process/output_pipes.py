"""The output pipes of a command, read by the event loop."""

import asyncio
import os
from collections.abc import Callable, Sequence

from agent.backends.process.output_capture import OutputCollector

READ_BYTES = 65_536


class OutputPipes:
    """Reads pipes until all processes that hold their other ends have ended."""

    def __init__(self, pipes: Sequence[int], sinks: Sequence[OutputCollector]) -> None:
        self._loop = asyncio.get_running_loop()
        self._open = set(pipes)
        self._pipes = tuple(pipes)
        self._is_discarding = False
        self.drained: asyncio.Future[None] = self._loop.create_future()
        for pipe, sink in zip(pipes, sinks, strict=True):
            os.set_blocking(pipe, False)
            self._loop.add_reader(pipe, self._read, pipe, sink)

    def discard(self, on_end: Callable[[], None]) -> None:
        """Drop all later output, so that processes left behind can continue to write; `on_end` follows the last."""
        self._is_discarding = True
        self.drained.add_done_callback(lambda _: on_end())

    def stop(self) -> None:
        """Stop reading; the pipes stay open."""
        if not self._loop.is_closed():
            for pipe in self._open:
                self._loop.remove_reader(pipe)
            if not self.drained.done():
                self.drained.cancel()
        self._open.clear()

    def close(self) -> None:
        """Stop reading and close the pipes."""
        self.stop()
        pipes, self._pipes = self._pipes, ()
        for pipe in pipes:
            os.close(pipe)

    def _read(self, pipe: int, sink: OutputCollector) -> None:
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            if not self._is_discarding:
                sink.feed(data)
            return
        self._loop.remove_reader(pipe)
        self._open.discard(pipe)
        if not self._open and not self.drained.done():
            self.drained.set_result(None)
