"""Reads an event log line by line, parsing only line heads: most readers decode few complete events."""

import json
from collections.abc import Iterator
from pathlib import Path

from agent.protocol.codec import CodecError, from_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import RunStarted
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import open_regular

# The exact form that the codec writes; any other form of the same object is parsed as JSON.
_HEAD = lazy_pattern(
    rb'\{"v": 1, "type": "([\w.]+)", "ts": "([^"\\]*)", "seq": ([1-9]\d{0,14}), '
    rb'"session_id": "[^"\\]*", "run_id": "([^"\\]*)"(?:, "step_id": "([^"\\]*)", "attempt": (\d{1,9}))?'
)
_STEP = b', "step_id": '
_LINE_START = b'{"v": 1, "type": "'
_SPENT = b', "spent": '


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """The head of one event, with the rest decoded on demand; `end` is the offset in the log just after the line."""

    type: str
    ts: str
    seq: int
    run_id: str
    step_id: str | None
    attempt: int | None = None
    raw: bytes
    end: int = 0

    def envelope(self) -> Envelope | None:
        """Decode the complete event; None if the line is not a valid one."""
        return parse_event(self.raw)

    def spent(self) -> Usage | None:
        """Return the usage at the end of the line without decoding the rest of it."""
        start = self.raw.rfind(_SPENT)
        tail = self.raw[start + len(_SPENT) : -2]
        # A nested object may have a field of the same name.
        if start < 0 or tail.count(b"{") != 1 or tail.find(b"}") != len(tail) - 1:
            return None
        try:
            return decode(Usage, json.loads(tail), extra="ignore")
        except ValueError:
            return None


def read_lines(path: Path, start: int = 0, *, only: str = "") -> Iterator[LogLine]:
    """Yield the lines of a log from byte `start`, optionally of one type, skipping incomplete ones."""
    wanted = _LINE_START + (f'{only}"'.encode() if only else b"")
    try:
        with open_regular(path) as log:
            end = log.seek(start)
            for raw in log:
                end += len(raw)
                if only and raw.startswith(_LINE_START) and not raw.startswith(wanted):
                    continue
                if (line := parse_head(raw, end)) and only in ("", line.type):
                    yield line
    except FileNotFoundError:
        return


def read_raw(path: Path) -> Iterator[bytes]:
    """Yield the lines of a log as they are."""
    try:
        with open_regular(path) as log:
            yield from log
    except FileNotFoundError:
        return


def parse_event(raw: bytes) -> Envelope | None:
    """Decode a complete event; None if the line is incomplete or not a valid one."""
    try:
        return from_line(raw) if raw.endswith(b"}\n") else None
    except (CodecError, RecursionError):
        return None


def parse_head(raw: bytes, end: int = 0) -> LogLine | None:
    """Parse the head of a line; None if the line is incomplete or not an event."""
    if not raw.endswith(b"}\n"):
        return None
    match = _HEAD.match(raw)
    if match is None or (match[5] is None and raw.startswith(_STEP, match.end())):
        return _parse_full(raw, end)
    return LogLine(
        type=match[1].decode(),
        ts=match[2].decode(errors="replace"),
        seq=int(match[3]),
        run_id=match[4].decode(errors="replace"),
        step_id=None if match[5] is None else match[5].decode(errors="replace"),
        attempt=None if match[6] is None else int(match[6]),
        raw=raw,
        end=end,
    )


def _parse_full(raw: bytes, end: int) -> LogLine | None:
    envelope = parse_event(raw)
    if envelope is None:
        return None
    return LogLine(
        type=envelope.event.type,
        ts=envelope.ts,
        seq=envelope.seq,
        run_id=envelope.run_id,
        step_id=envelope.step_id,
        attempt=envelope.attempt,
        raw=raw,
        end=end,
    )


def run_lines(path: Path, run_id: str) -> Iterator[LogLine]:
    """Yield the lines of one run in log order."""
    return (line for line in read_lines(path) if line.run_id == run_id)


def run_events(path: Path, run_id: str) -> list[Envelope]:
    """Return the events of a run in order, skipping those that this version cannot decode."""
    return [envelope for line in run_lines(path, run_id) if (envelope := line.envelope())]


def read_run_chain(path: Path, run_id: str) -> list[list[Envelope]]:
    """Return the events of a run and of the runs it resumed, oldest run first."""
    chain: list[list[Envelope]] = []
    seen: set[str] = set()
    current: str | None = run_id
    while current and current not in seen:
        seen.add(current)
        events = run_events(path, current)
        chain.append(events)
        current = next((e.event.resumes for e in events if isinstance(e.event, RunStarted)), None)
    return chain[::-1]
