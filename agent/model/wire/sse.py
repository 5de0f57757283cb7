"""Incremental parser for server-sent events."""

import json
from collections.abc import Callable

from agent.model.faults import ModelFault
from tooling.contract.fast_dataclass import dataclass

STREAM_TRUNCATED = "the stream ended before the reply was complete"
# One event carries at most a complete tool call; a larger one means a broken or hostile server.
MAX_EVENT_BYTES = 8 * 1024 * 1024
# Without `json.loads`, whose checks take as long as a short chunk.
_decoder = json.JSONDecoder()
_scan: Callable[[str, int], tuple[object, int]] = vars(_decoder)["scan_once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event: its name, empty if the server sent none, and its data."""

    name: str
    data: str


class SseParser:
    """Turns bytes, split anywhere, into events."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._partial_line: list[bytes] = []
        self._name = ""
        self._data: list[str] = []
        self._event_bytes = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that this chunk completes."""
        self._event_bytes += len(chunk)
        if self._event_bytes > self._max_event_bytes:
            raise ModelFault("malformed", f"one event of the stream is larger than {self._max_event_bytes} bytes")
        head, newline, tail = chunk.partition(b"\n")
        self._partial_line.append(head)
        if not newline:
            return []
        lines = [b"".join(self._partial_line), *tail.split(b"\n")]
        self._partial_line = [lines.pop()]
        events: list[SseEvent] = []
        for line in lines:
            # Nearly all lines are one of these: a field with its usual blank, or the empty line at the end of an event.
            if line[:6] == b"data: " and line[-1:] != b"\r":
                self._data.append(line[6:].decode("utf-8", "replace"))
            elif event := self._parse_line(line.removesuffix(b"\r")) if line else self._dispatch():
                events.append(event)
        return events

    def finish(self) -> list[SseEvent]:
        """Return the last event if the server omitted its terminating empty line."""
        last = self._parse_line(b"".join(self._partial_line).removesuffix(b"\r"))
        self._partial_line = []
        return [event for event in (last, self._parse_line(b"")) if event]

    def _parse_line(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        # Split into lines before decoding, so that no character is split.
        field, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "error" and value.startswith("{"):
            # llama.cpp sends a non-standard `error` field if it fails during a stream.
            self._data.append(f'{{"error": {value}}}')
        return None

    def _dispatch(self) -> SseEvent | None:
        data = self._data
        event = SseEvent(name=self._name, data="\n".join(data) if len(data) > 1 else data[0]) if data else None
        self._name, self._data, self._event_bytes = "", [], 0
        return event


def parse_json_object(text: str) -> dict[str, object]:
    """Parse a JSON object from a provider, or raise ModelFault."""
    try:
        value = _parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ModelFault("malformed", f"not JSON: {text[:120]!r}") from error
    if not isinstance(value, dict):
        raise ModelFault("malformed", f"not a JSON object: {text[:120]!r}")
    return value


def _parse_json(text: str) -> object:
    value: object
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    # Anything around the value is whitespace, or makes it invalid.
    return value if end == len(text) else _decoder.decode(text)
