"""The lines of an event log, read at their heads: most readers need few of them whole."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from agent.protocol.codec import CodecError, from_line
from agent.protocol.events import Envelope, RunStarted
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode

# As the codec writes it; any other spelling of the same object is read the slow way.
_HEAD = re.compile(
    rb'\{"v": 1, "type": "([\w.]+)", "ts": "([^"\\]*)", "seq": (\d+), "session_id": "[^"\\]*", "run_id": "([^"\\]*)"'
    rb'(?:, "step_id": "([^"\\]*)", "attempt")?'
)
_STEP = b', "step_id": '
_LINE_START = b'{"v": 1, "type": "'
_SPENT = b', "spent": '


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One event as far as its head tells, and all of it on demand; `end` is the byte behind it in its log."""

    type: str
    ts: str
    seq: int
    run_id: str
    step_id: str | None
    raw: bytes
    end: int = 0

    def envelope(self) -> Envelope | None:
        """Return the whole event, or None when the line is not one."""
        try:
            return from_line(self.raw)
        except (CodecError, RecursionError):
            return None

    def spent(self) -> Usage | None:
        """Return what stands at the end of the line about tokens and money, without reading the rest of it."""
        begin = self.raw.rfind(_SPENT)
        tail = self.raw[begin + len(_SPENT) : -2]
        # Deeper inside of the event something else may have the same name.
        if begin < 0 or tail.count(b"{") != 1 or tail.find(b"}") != len(tail) - 1:
            return None
        try:
            return decode(Usage, json.loads(tail), extra="ignore")
        except ValueError:
            return None


def read_lines(path: Path, start: int = 0, *, only: str = "") -> Iterator[LogLine]:
    """Yield the lines of a log from a byte on, all or those of one type; what a crash tore off is passed over."""
    wanted = _LINE_START + (f'{only}"'.encode() if only else b"")
    try:
        with path.open("rb") as log:
            end = log.seek(start)
            for raw in log:
                end += len(raw)
                if only and raw.startswith(_LINE_START) and not raw.startswith(wanted):
                    continue
                if (line := parse_head(raw, end)) and only in ("", line.type):
                    yield line
    except FileNotFoundError:
        return


def parse_head(raw: bytes, end: int = 0) -> LogLine | None:
    """Return a line by its head; a line that does not end was never finished."""
    if not raw.endswith(b"}\n"):
        return None
    found = _HEAD.match(raw)
    if found is None or (found[5] is None and raw.startswith(_STEP, found.end())):
        return _parse_full(raw, end)
    return LogLine(
        type=found[1].decode(),
        ts=found[2].decode(errors="replace"),
        seq=int(found[3]),
        run_id=found[4].decode(errors="replace"),
        step_id=None if found[5] is None else found[5].decode(errors="replace"),
        raw=raw,
        end=end,
    )


def _parse_full(raw: bytes, end: int) -> LogLine | None:
    try:
        envelope = from_line(raw)
    except (CodecError, RecursionError):
        return None
    return LogLine(
        type=envelope.event.type,
        ts=envelope.ts,
        seq=envelope.seq,
        run_id=envelope.run_id,
        step_id=envelope.step_id,
        raw=raw,
        end=end,
    )


def run_lines(path: Path, run_id: str) -> Iterator[LogLine]:
    """Yield the lines of a run as they stand in the log."""
    return (line for line in read_lines(path) if line.run_id == run_id)


def run_events(path: Path, run_id: str) -> list[Envelope]:
    """Return the events of a run in order; those that this version does not understand are passed over."""
    return [envelope for line in run_lines(path, run_id) if (envelope := line.envelope())]


def read_run_chain(path: Path, run_id: str) -> list[list[Envelope]]:
    """Return a run and those it went on with, the first one first, each as its events."""
    chain: list[list[Envelope]] = []
    seen: set[str] = set()
    name: str | None = run_id
    while name and name not in seen:
        seen.add(name)
        events = run_events(path, name)
        chain.append(events)
        name = next((e.event.resumes for e in events if isinstance(e.event, RunStarted)), None)
    return chain[::-1]
