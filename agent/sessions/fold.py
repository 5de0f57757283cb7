"""SESSION.json: the session as data, folded from its event log and rebuilt from it at any time."""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from agent.protocol.events import Envelope, MessageSaid, PlanMade, RunCompleted, RunStarted, StepCompleted
from agent.sessions.event_log import read_events
from agent.sessions.store import SessionFolder
from agent.vocabulary.usage import Usage
from tooling.contract.shape import decode, encode

RUNS_KEPT = 50
_SUMMARY_CHARS = 2000
# Longer than a file system's clock ticks, so that no append can share the time that was read.
_AT_REST_NS = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of a past run."""

    id: str
    status: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One past run: what was asked, planned, done and answered."""

    run_id: str
    date: str
    user: str = ""
    steps: tuple[str, ...] = ()
    step_results: tuple[StepRecord, ...] = ()
    final: str = ""
    subtype: str = "unfinished"
    exit_code: int | None = None
    usage: Usage | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as its listings and its next run see it.

    `runs` are the newest ones; `request` is the first that was ever made, `run_count` and `cost_usd` are of all runs.
    """

    id: str
    created_at: str = ""
    updated_at: str = ""
    cwd: str = ""
    request: str = ""
    run_count: int = 0
    cost_usd: float | None = 0.0
    runs: tuple[RunRecord, ...] = ()


def fold(session_id: str, events: Iterable[Envelope]) -> SessionRecord:
    """Fold a log into the session it tells of; only the newest runs are kept."""
    created = updated = cwd = ""
    runs: dict[str, RunRecord] = {}
    for envelope in events:
        created, updated = created or envelope.ts, envelope.ts
        if isinstance(envelope.event, RunStarted):
            cwd = envelope.event.cwd
        run = runs.get(envelope.run_id) or RunRecord(run_id=envelope.run_id, date=envelope.ts)
        runs[envelope.run_id] = _advance(run, envelope)
    every = tuple(runs.values())
    return SessionRecord(
        id=session_id,
        created_at=created,
        updated_at=updated,
        cwd=cwd,
        request=next((run.user for run in every if run.user), ""),
        run_count=len(every),
        cost_usd=sum((run.usage for run in every if run.usage), Usage()).cost_usd,
        runs=every[-RUNS_KEPT:],
    )


def _advance(run: RunRecord, envelope: Envelope) -> RunRecord:
    match envelope.event:
        case MessageSaid(role="user", content=content, delta=False) if envelope.step_id is None:
            return replace(run, user=content)
        case PlanMade(steps=steps):
            return replace(run, steps=tuple(f"{step.id}: {step.title}" for step in steps))
        case StepCompleted(status=status, summary=summary):
            record = StepRecord(id=envelope.step_id or "", status=status, summary=summary[:_SUMMARY_CHARS])
            others = tuple(step for step in run.step_results if step.id != record.id)
            return replace(run, step_results=(*others, record))
        case RunCompleted() as end:
            return replace(
                run,
                final=end.result,
                subtype=end.subtype,
                exit_code=end.exit_code,
                usage=end.usage,
                duration_ms=end.duration_ms,
            )
        case _:
            return run


def read_session(folder: SessionFolder) -> SessionRecord:
    """Return a session from SESSION.json, or from its log where that is newer or the file will not do."""
    try:
        if folder.summary.stat().st_mtime_ns >= folder.events.stat().st_mtime_ns:
            return decode(SessionRecord, json.loads(folder.summary.read_bytes()), extra="ignore")
    except (OSError, ValueError):
        # The log is the truth; what cannot be read from the copy is read from it.
        pass
    return _rebuilt(folder)


def _rebuilt(folder: SessionFolder) -> SessionRecord:
    """Fold the log anew, and keep the result for the next reader when the log is at rest."""
    try:
        logged = folder.events.stat().st_mtime_ns
    except OSError:
        return SessionRecord(id=folder.id)
    record = fold(folder.id, read_events(folder.events))
    if time.time_ns() - logged > _AT_REST_NS:
        try:
            # As old as what it was read from: whatever a run appends meanwhile makes the log the newer one again.
            write_session(folder.summary, record, mtime_ns=logged)
        except OSError:
            pass
    return record


def write_session(path: Path, record: SessionRecord, *, mtime_ns: int | None = None) -> None:
    """Replace SESSION.json in one step; a reader sees the old file or the new one, never half of one."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    text = json.dumps(encode(record), ensure_ascii=False, indent=1)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())
        if mtime_ns is not None:
            os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
    temporary.replace(path)
