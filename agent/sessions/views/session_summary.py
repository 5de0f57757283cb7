"""SESSION.json: the session as data, folded from its event log and rebuilt from it at any time."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from agent.protocol.events import Envelope, MessageSaid, PlanMade, RunCompleted, RunStarted, StepCompleted
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.store import SessionFolder
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode, encode
from tooling.files.atomic_write import backup_path, write_atomic

MAX_RUNS = 50
_SUMMARY_CHARS = 2000
# Longer than a run is ever silent while it ends; a log that still grows is not worth summing up.
_IDLE_NS = 2_000_000_000
# Only these are read whole; of the others the head is enough.
_SUMMARY_EVENTS = frozenset(event.type for event in (RunStarted, MessageSaid, PlanMade, StepCompleted, RunCompleted))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of a past run."""

    id: str
    status: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One past run: what was asked, planned, done and answered; `resumes` is the run it went on with.

    `spent` is by step what a run without an end is known to have cost, planning under an empty id.
    """

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
    resumes: str | None = None
    cwd: str = ""
    backend: str = ""
    model: str = ""
    planner_model: str = ""
    plan_only: bool = False
    spent: Mapping[str, Usage] = field(default_factory=dict)

    @property
    def known_usage(self) -> Usage | None:
        """Return what the run has cost as far as its log tells; None when it tells nothing."""
        return self.usage or (sum(self.spent.values(), Usage()) if self.spent else None)

    @property
    def titled_steps(self) -> tuple[tuple[str, str], ...]:
        """Return the ids of the planned steps with their titles."""
        return tuple((name, title) for name, _, title in (step.partition(": ") for step in self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """What a listing shows of a session: `request` is the first that was ever made, the sums are of all runs.

    `log_bytes` is how much of the log all this was read from.
    """

    id: str
    created_at: str = ""
    updated_at: str = ""
    cwd: str = ""
    request: str = ""
    run_count: int = 0
    cost_usd: float | None = 0.0
    last_request: str = ""
    last_subtype: str = ""
    log_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(SessionHead):
    """A session as its pages and its next run see it; `runs` are the newest ones."""

    runs: tuple[RunRecord, ...] = ()


class _SummaryBuilder:
    """A session that grows line by line."""

    def __init__(self, record: SessionRecord) -> None:
        self._record = record
        self._runs = {run.run_id: run for run in record.runs}
        self._steps = {run.run_id: {step.id: step for step in run.step_results} for run in record.runs}
        # A plan is told again whenever it grows; only the newest is worth reading.
        self._plans: dict[str, LogLine] = {}
        # What the last run has cost is known when another one begins, or when it ends.
        self._cost = Usage(cost_usd=_completed_cost(record))
        self._count = record.run_count
        self._created, self._updated, self._cwd = record.created_at, record.updated_at, record.cwd

    def apply(self, line: LogLine) -> None:
        self._created, self._updated = self._created or line.ts, line.ts
        if line.run_id not in self._runs:
            self._cost += self._unfinished_cost()
            self._runs[line.run_id] = RunRecord(run_id=line.run_id, date=line.ts)
            self._steps[line.run_id] = {}
            self._count += 1
        if line.type == PlanMade.type:
            self._plans[line.run_id] = line
            self._add_usage(line, "", Usage())
        elif line.type == MessageSaid.type and line.step_id is not None:
            self._add_usage(line, line.step_id, self._runs[line.run_id].spent.get(line.step_id, Usage()))
        elif self._is_relevant(line) and (envelope := line.envelope()):
            self._apply_event(envelope)

    @staticmethod
    def _is_relevant(line: LogLine) -> bool:
        return line.type in _SUMMARY_EVENTS

    def _add_usage(self, line: LogLine, step_id: str, before: Usage) -> None:
        """Note what a line says about cost; what is said inside of steps is most of a log, and is not read whole."""
        if usage := line.spent():
            run = self._runs[line.run_id]
            self._runs[run.run_id] = replace(run, spent={**run.spent, step_id: before + usage})

    def _unfinished_cost(self) -> Usage:
        """Return what the last run has cost that has no end."""
        last = next(reversed(self._runs.values()), None)
        return Usage() if last is None else sum(last.spent.values(), Usage())

    def _apply_event(self, envelope: Envelope) -> None:
        run = self._runs[envelope.run_id]
        match envelope.event:
            case RunStarted() as start:
                self._cwd = start.cwd
                run = _with_start(run, start)
            case MessageSaid(role="user", content=content, delta=False) if envelope.step_id is None:
                run = replace(run, user=content)
            case StepCompleted(status=status, summary=summary, usage=usage):
                run = replace(run, spent={**run.spent, envelope.step_id or "": usage})
                record = StepRecord(id=envelope.step_id or "", status=status, summary=summary[:_SUMMARY_CHARS])
                self._steps[run.run_id].pop(record.id, None)
                self._steps[run.run_id][record.id] = record
            case RunCompleted() as end:
                self._cost += end.usage
                run = _with_end(run, end)
            case _:
                pass
        self._runs[run.run_id] = run

    def build(self, size: int, *, runs_kept: int | None = MAX_RUNS) -> SessionRecord:
        every = [self._with_steps(run) for run in self._runs.values()]
        return replace(
            self._record,
            created_at=self._created,
            updated_at=self._updated,
            cwd=self._cwd,
            request=self._record.request or next((run.user for run in every if run.user), ""),
            run_count=self._count,
            cost_usd=(self._cost + self._unfinished_cost()).cost_usd,
            last_request=every[-1].user if every else "",
            last_subtype=every[-1].subtype if every else "",
            runs=tuple(every if runs_kept is None else every[-runs_kept:]),
            log_bytes=size,
        )

    def _with_steps(self, run: RunRecord) -> RunRecord:
        plan = self._plans.get(run.run_id)
        made = plan.envelope() if plan else None
        steps = made.event.steps if made and isinstance(made.event, PlanMade) else None
        return replace(
            run,
            steps=run.steps if steps is None else tuple(f"{step.id}: {step.title}" for step in steps),
            step_results=tuple(self._steps[run.run_id].values()),
        )


def _with_start(run: RunRecord, start: RunStarted) -> RunRecord:
    return replace(
        run,
        resumes=start.resumes,
        cwd=start.cwd,
        backend=start.backend,
        model=start.model,
        planner_model=start.planner_model,
        plan_only=start.plan_only,
    )


def _with_end(run: RunRecord, end: RunCompleted) -> RunRecord:
    return replace(
        run,
        final=end.result,
        subtype=end.subtype,
        exit_code=end.exit_code,
        usage=end.usage,
        duration_ms=end.duration_ms,
        spent={},
    )


def _completed_cost(record: SessionRecord) -> float | None:
    """Return what the runs before the last one have cost, and that one too when it has an end."""
    open_end = sum(record.runs[-1].spent.values(), Usage()).cost_usd if record.runs else 0.0
    return None if record.cost_usd is None or open_end is None else record.cost_usd - open_end


def read_session(folder: SessionFolder) -> SessionRecord:
    """Return a session from SESSION.json and from what its log has beyond that; a log at rest is summed up anew.

    Raises OSError for a log that is there and cannot be read: that is no empty session.
    """
    try:
        logged = folder.events.stat()
    except FileNotFoundError:
        return SessionRecord(id=folder.id)
    kept, is_ours = _load_summary(folder, logged.st_size)
    record = _catch_up(kept, folder.events, logged.st_size)
    if is_ours and record is not kept and time.time_ns() - logged.st_mtime_ns > _IDLE_NS:
        try:
            write_session(folder.summary, record)
            # As old as what it was read from, so that listings can tell by the times alone which is the newer.
            os.utime(folder.summary, ns=(logged.st_mtime_ns, logged.st_mtime_ns))
        except OSError:
            pass
    return record


def read_head(folder: SessionFolder) -> SessionHead:
    """Return what a listing shows of a session, in a fraction of the time where SESSION.json is up to date."""
    try:
        head = decode(SessionHead, json.loads(folder.summary.read_bytes()), extra="ignore")
        if (head.id, head.log_bytes) == (folder.id, folder.events.stat().st_size):
            return head
    except (OSError, ValueError, RecursionError):
        # The log is the truth; what cannot be read from the copy is read from it.
        pass
    return read_session(folder)


def read_all_runs(folder: SessionFolder) -> SessionRecord:
    """Return a session with all its runs, also those that SESSION.json leaves out."""
    record = read_session(folder)
    if record.run_count == len(record.runs):
        return record
    return read_log(folder, runs_kept=None)


def read_log(folder: SessionFolder, *, size: int | None = None, runs_kept: int | None = MAX_RUNS) -> SessionRecord:
    """Return a session as the first `size` bytes of its log tell it, or all of them."""
    folding, end = _SummaryBuilder(SessionRecord(id=folder.id)), 0
    for line in read_lines(folder.events):
        if size is not None and line.end > size:
            break
        folding.apply(line)
        end = line.end
    return folding.build(end, runs_kept=runs_kept)


def read_summary(folder: SessionFolder) -> SessionRecord | None:
    """Return what SESSION.json says, None when it is missing; raises ValueError when it is no such file."""
    try:
        return decode(SessionRecord, json.loads(folder.summary.read_bytes()), extra="ignore")
    except OSError:
        return None
    except RecursionError as error:
        raise ValueError("too deep") from error


def refresh_session(folder: SessionFolder) -> Path | None:
    """Bring SESSION.json up to date; what stood there and was no such file is kept aside, and its path returned."""
    aside = None
    if not _load_summary(folder, 0)[1]:
        aside = backup_path(folder.summary, "corrupt")
        folder.summary.rename(aside)
    write_session(folder.summary, read_session(folder))
    return aside


def write_session(path: Path, record: SessionRecord) -> None:
    """Replace SESSION.json in one step; a reader sees the old file or the new one, never half of one."""
    text = json.dumps(encode(record), ensure_ascii=False, indent=1)
    write_atomic(path, text.encode("utf-8", "backslashreplace"))


def _load_summary(folder: SessionFolder, size: int) -> tuple[SessionRecord, bool]:
    """Return what SESSION.json says, nothing when it does not fit the log; and False when a strange file is there."""
    empty = SessionRecord(id=folder.id)
    try:
        record = read_summary(folder) or empty
    except ValueError:
        return empty, False
    fits = record.id == folder.id and 0 < record.log_bytes <= size
    return (record if fits else empty), True


def _catch_up(record: SessionRecord, log: Path, size: int) -> SessionRecord:
    """Return the record with what a log has beyond it."""
    if record.log_bytes == size:
        return record
    if not _is_line_end(log, record.log_bytes):
        record = SessionRecord(id=record.id)
    folding, end = _SummaryBuilder(record), record.log_bytes
    for line in read_lines(log, record.log_bytes):
        folding.apply(line)
        end = line.end
    return folding.build(end) if end != record.log_bytes else record


def _is_line_end(log: Path, place: int) -> bool:
    if place == 0:
        return True
    with log.open("rb") as file:
        file.seek(place - 1)
        return file.read(1) == b"\n"
