"""stdout: only data goes there, whole; a slow reader is waited for, one that left and a full disk are noticed."""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Mapping

from agent.protocol.codec import to_json
from agent.protocol.events import Envelope
from agent.vocabulary.outcome import Outcome
from cli.screen.sanitize import sanitize, to_safe_json
from tooling.contract.json_codec import encode


def write_line(text: str) -> None:
    """Write and flush one line; what cannot be encoded is escaped instead of failing."""
    sys.stdout.buffer.write(_encode_line(text))
    sys.stdout.buffer.flush()


def sanitize_for_terminal(text: str) -> str:
    """Return a text for stdout: what a model wrote must not move the cursor; a program gets it as it is."""
    return sanitize(text) if sys.stdout.isatty() else text


class LineWriter:
    """Writes lines in a thread of its own, so that a full pipe never holds up the run or its end."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[tuple[str, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # Not through the buffer: a thread that is held up in it keeps everybody else from flushing it, even at the end.
        self._fd = sys.stdout.fileno()
        threading.Thread(target=self._write_lines, daemon=True, name="stdout").start()

    async def write(self, text: str) -> None:
        """Write one line; raises OSError as a plain write would."""
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
    """Return one event as a line of stream-json."""
    return to_safe_json(to_json(envelope))


def result_document(result: Envelope, outcome: Outcome, more: Mapping[str, object] | None = None) -> str:
    """Return the result event with its steps and their results in full, as one document; `more` is added to it."""
    document = to_json(result)
    document["error"] = outcome.error
    document["steps"] = encode(outcome.plan.steps) if outcome.plan else []
    document["step_results"] = encode(outcome.responses)
    document |= more or {}
    return to_safe_json(document, indent=2)
