"""The events of one run, picked out of a session's log without reading the others whole."""

from collections.abc import Iterator
from pathlib import Path

from agent.protocol.events import Envelope, RunStarted
from agent.sessions.log.log_index import LogLine, read_lines


def lines_of(path: Path, run_id: str) -> Iterator[LogLine]:
    """Yield the lines of a run as they stand in the log."""
    return (line for line in read_lines(path) if line.run_id == run_id)


def events_of(path: Path, run_id: str) -> list[Envelope]:
    """Return the events of a run in order; those that this version does not understand are passed over."""
    return [envelope for line in lines_of(path, run_id) if (envelope := line.envelope())]


def lineage(path: Path, run_id: str) -> list[list[Envelope]]:
    """Return a run and those it went on with, the first one first, each as its events."""
    chain: list[list[Envelope]] = []
    seen: set[str] = set()
    name: str | None = run_id
    while name and name not in seen:
        seen.add(name)
        events = events_of(path, name)
        chain.append(events)
        name = next((e.event.resumes for e in events if isinstance(e.event, RunStarted)), None)
    return chain[::-1]
