"""Writing data to stdout: complete lines, without blocking the run; errors are reported."""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Mapping

from agent.protocol.codec import to_json
from agent.protocol.envelope import Envelope
from agent.vocabulary.outcome import Outcome
from cli.screen.sanitize import sanitize, to_safe_json
from tooling.contract.json_codec import encode


def write_line(text: str) -> None:
    """Write and flush one line; characters that cannot be encoded are escaped."""
    sys.stdout.buffer.write(_encode_line(text))
    sys.stdout.buffer.flush()


def sanitize_for_terminal(text: str) -> str:
    """Strip control sequences if stdout is a terminal; programs get the text unchanged."""
    return sanitize(text) if sys.stdout.isatty() else text


class LineWriter:
    """Writes lines in a thread, so that a full pipe blocks neither the run nor its end."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[tuple[str, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # Not through sys.stdout.buffer: a thread blocked in it holds its lock, and the flush at exit would hang.
        self._fd = sys.stdout.fileno()
        threading.Thread(target=self._write_lines, daemon=True, name="stdout").start()

    async def write(self, text: str) -> None:
        """Write one line, or raise OSError."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((text, written))
        await written

    def _write_lines(self) -> None:
        while True:
            text, written = self._lines.get()
            problem: OSError | None = None
            try:
                rest = memoryview(_encode_line(text))
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                problem = error
            self._loop.call_soon_threadsafe(_complete, written, problem)


def _encode_line(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _complete(written: asyncio.Future[None], problem: OSError | None) -> None:
    if written.done():
        return
    if problem:
        written.set_exception(problem)
    else:
        written.set_result(None)


def event_line(envelope: Envelope) -> str:
    """Encode an event as a line of stream-json."""
    return to_safe_json(to_json(envelope))


def result_document(result: Envelope, outcome: Outcome, more: Mapping[str, object] | None = None) -> str:
    """Encode the result event with all steps and their results; `more` is merged into the document."""
    document = to_json(result)
    document["error"] = outcome.error
    document["steps"] = encode(outcome.plan.steps) if outcome.plan else []
    document["step_results"] = encode(outcome.responses)
    document |= more or {}
    return to_safe_json(document, indent=2)
