"""SESSION.json: a summary of a session, folded from its event log and rebuilt from it when stale."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ManifestApplied,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    SessionRewound,
    StepCompleted,
)
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.store import SessionFolder
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode, encode
from tooling.files.atomic_write import backup_path, write_atomic
from tooling.files.open_regular import NOT_REGULAR, NotRegularFile, open_regular, read_regular, stat_regular

MAX_RUNS = 50
_SUMMARY_CHARS = 2000
# Longer than a run is silent while it ends: no summary is written for a log that may still grow.
_IDLE_NS = 2_000_000_000
# Only these events are decoded; for the others the head is enough.
_SUMMARY_EVENTS = frozenset(
    event.type
    for event in (
        RunStarted,
        ManifestApplied,
        MessageAdded,
        PlanUpdated,
        StepCompleted,
        SessionRewound,
        RunCompleted,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of a past run."""

    id: str
    status: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One past run; `resumes` is the id of the run it resumed, `rewound_to` the run that a rewind went back to.

    `spent` is the known usage, by step, of a run without an end; planning has an empty step id. `manifest_file` is the
    manifest that limited the run. A run that failed before it was set up has no tools.
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
    image: str | None = None
    model: str = ""
    planner_model: str = ""
    plan_only: bool = False
    rewound_to: str | None = None
    manifest_file: str | None = None
    has_tools: bool = True
    spent: Mapping[str, Usage] = field(default_factory=dict)

    @property
    def known_usage(self) -> Usage | None:
        """The usage of the run as far as the log has it; None if it has none."""
        return self.usage or (sum(self.spent.values(), Usage()) if self.spent else None)

    @property
    def failed_to_start(self) -> bool:
        """Whether the run failed before it could do anything, for example for want of a model."""
        return self.subtype != "unfinished" and not (self.has_tools or self.steps)

    @property
    def titled_steps(self) -> tuple[tuple[str, str], ...]:
        """The ids and titles of the planned steps."""
        return tuple((step_id, title) for step_id, _, title in (step.partition(": ") for step in self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The fields of a session that a listing shows; `request` is its first request, sums cover all runs.

    `log_bytes` is the size of the part of the log that this was read from.
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
    """A session with its newest runs."""

    runs: tuple[RunRecord, ...] = ()


def active_runs(runs: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the runs that belong to the conversation: without those that were rewound, and without the rewinds."""
    kept: list[RunRecord] = []
    for run in runs:
        if run.rewound_to is None:
            kept.append(run)
        else:
            # A run that is not listed is older than all listed ones.
            kept = kept[: next((at for at, known in enumerate(kept) if known.run_id == run.rewound_to), 0)]
    return tuple(kept)


class _SummaryBuilder:
    """Folds log lines into a session record."""

    def __init__(self, record: SessionRecord) -> None:
        self._record = record
        self._runs = {run.run_id: run for run in record.runs}
        self._steps = {run.run_id: {step.id: step for step in run.step_results} for run in record.runs}
        # What each run has spent, by step.
        self._spent = {run.run_id: dict(run.spent) for run in record.runs}
        # A plan is announced again whenever it grows; only the newest is decoded.
        self._plans: dict[str, LogLine] = {}
        # Costs of finished runs; the last run is added when it ends or when another one starts.
        self._cost = Usage(cost_usd=_completed_cost(record))
        self._count = record.run_count
        self._created, self._updated, self._cwd = record.created_at, record.updated_at, record.cwd

    def apply(self, line: LogLine) -> None:
        self._created, self._updated = self._created or line.ts, line.ts
        if line.run_id not in self._runs:
            self._cost += self._unfinished_cost()
            self._runs[line.run_id] = RunRecord(run_id=line.run_id, date=line.ts)
            self._steps[line.run_id] = {}
            self._spent[line.run_id] = {}
            self._count += 1
        if line.type == PlanUpdated.type:
            self._plans[line.run_id] = line
            self._set_usage(line, "", Usage())
        elif line.type == MessageAdded.type and line.step_id is not None:
            self._set_usage(line, line.step_id, self._spent[line.run_id].get(line.step_id, Usage()))
        elif self._is_relevant(line) and (envelope := line.envelope()):
            self._apply_event(envelope)

    @staticmethod
    def _is_relevant(line: LogLine) -> bool:
        return line.type in _SUMMARY_EVENTS

    def _set_usage(self, line: LogLine, step_id: str, before: Usage) -> None:
        """Add the usage of a line without decoding it: messages inside steps are most of a log."""
        if usage := line.spent():
            self._spent[line.run_id][step_id] = before + usage

    def _unfinished_cost(self) -> Usage:
        """Return the usage of the last run if it has no end."""
        last = next(reversed(self._runs), None)
        return Usage() if last is None else sum(self._spent[last].values(), Usage())

    def _apply_event(self, envelope: Envelope) -> None:
        run = self._runs[envelope.run_id]
        match envelope.event:
            case RunStarted() as start:
                self._cwd = start.cwd
                run = _with_start(run, start)
            case MessageAdded(role="user", content=content, delta=False) if envelope.step_id is None:
                run = replace(run, user=content)
            case StepCompleted(status=status, summary=summary, usage=usage):
                self._spent[run.run_id][envelope.step_id or ""] = usage
                record = StepRecord(id=envelope.step_id or "", status=status, summary=summary[:_SUMMARY_CHARS])
                self._steps[run.run_id].pop(record.id, None)
                self._steps[run.run_id][record.id] = record
            case ManifestApplied(by="file", manifest_file=path):
                run = replace(run, manifest_file=path)
            case SessionRewound(before_run=before):
                run = replace(run, rewound_to=before)
            case RunCompleted() as end:
                self._cost += end.usage
                self._spent[run.run_id] = {}
                run = _with_end(run, end)
            case _:
                pass
        self._runs[run.run_id] = run

    def build(self, size: int, *, max_runs: int | None = MAX_RUNS) -> SessionRecord:
        runs = [self._with_steps(run) for run in self._runs.values()]
        return replace(
            self._record,
            created_at=self._created,
            updated_at=self._updated,
            cwd=self._cwd,
            request=self._record.request or next((run.user for run in runs if run.user), ""),
            run_count=self._count,
            cost_usd=(self._cost + self._unfinished_cost()).cost_usd,
            last_request=runs[-1].user if runs else "",
            last_subtype=runs[-1].subtype if runs else "",
            runs=tuple(runs if max_runs is None else runs[-max_runs:]),
            log_bytes=size,
        )

    def _with_steps(self, run: RunRecord) -> RunRecord:
        plan = self._plans.get(run.run_id)
        return replace(
            run,
            spent=self._spent[run.run_id],
            steps=run.steps if plan is None else _step_titles(plan, run.steps),
            step_results=tuple(self._steps[run.run_id].values()),
        )


def _step_titles(plan: LogLine, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the id and the title of each step of a plan, without decoding the rest of it; `known` if it is damaged."""
    try:
        return tuple(f"{step['id']}: {step['title']}" for step in json.loads(plan.raw)["steps"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return known


def _with_start(run: RunRecord, start: RunStarted) -> RunRecord:
    return replace(
        run,
        resumes=start.resumes,
        cwd=start.cwd,
        backend=start.backend,
        image=start.image,
        model=start.model,
        planner_model=start.planner_model,
        plan_only=start.plan_only,
        has_tools=bool(start.tools),
    )


def _with_end(run: RunRecord, end: RunCompleted) -> RunRecord:
    return replace(
        run,
        final=end.result,
        subtype=end.subtype,
        exit_code=end.exit_code,
        usage=end.usage,
        duration_ms=end.duration_ms,
    )


def _completed_cost(record: SessionRecord) -> float | None:
    """Return the cost of all runs that have an end; only the last one may have none."""
    unfinished = sum(record.runs[-1].spent.values(), Usage()).cost_usd if record.runs else 0.0
    return None if record.cost_usd is None or unfinished is None else record.cost_usd - unfinished


def read_session(folder: SessionFolder) -> SessionRecord:
    """Read a session from SESSION.json and the rest of its log; rewrite SESSION.json if the log is idle.

    Raises OSError if the log exists but cannot be read: such a session is not empty.
    """
    try:
        logged = stat_regular(folder.events)
    except FileNotFoundError:
        return SessionRecord(id=folder.id)
    summary, is_ours = _load_summary(folder, logged.st_size)
    record = _catch_up(summary, folder.events, logged.st_size)
    if is_ours and record is not summary and time.time_ns() - logged.st_mtime_ns > _IDLE_NS:
        try:
            write_session(folder.summary, record)
            # The same mtime as the log, so that listings see from the times alone whether the summary is current.
            os.utime(folder.summary, ns=(logged.st_mtime_ns, logged.st_mtime_ns))
        except OSError:
            pass
    return record


def read_head(folder: SessionFolder) -> SessionHead:
    """Read the fields that a listing shows; much faster than `read_session` if SESSION.json is current."""
    try:
        head = decode(SessionHead, json.loads(read_regular(folder.summary)), extra="ignore")
        if (head.id, head.log_bytes) == (folder.id, stat_regular(folder.events).st_size):
            return head
    except (OSError, ValueError, RecursionError):
        # The log is authoritative; SESSION.json is only a cache of it.
        pass
    return read_session(folder)


def read_all_runs(folder: SessionFolder) -> SessionRecord:
    """Read a session with all its runs, including those that SESSION.json leaves out."""
    record = read_session(folder)
    if record.run_count == len(record.runs):
        return record
    return read_log(folder, max_runs=None)


def read_log(folder: SessionFolder, *, size: int | None = None, max_runs: int | None = MAX_RUNS) -> SessionRecord:
    """Build a session record from the first `size` bytes of its log, or from all of it."""
    builder, end = _SummaryBuilder(SessionRecord(id=folder.id)), 0
    for line in read_lines(folder.events):
        if size is not None and line.end > size:
            break
        builder.apply(line)
        end = line.end
    return builder.build(end, max_runs=max_runs)


def read_summary(folder: SessionFolder) -> SessionRecord | None:
    """Read SESSION.json; None if it is missing. Raises ValueError if it is invalid."""
    try:
        return decode(SessionRecord, json.loads(read_regular(folder.summary)), extra="ignore")
    except NotRegularFile as error:
        raise ValueError(NOT_REGULAR) from error
    except OSError:
        return None
    except RecursionError as error:
        raise ValueError("too deep") from error


def refresh_session(folder: SessionFolder) -> Path | None:
    """Bring SESSION.json up to date; an invalid file is renamed first, and its new path returned."""
    backup = None
    if not _load_summary(folder, 0)[1]:
        backup = backup_path(folder.summary, "corrupt")
        folder.summary.rename(backup)
    write_session(folder.summary, read_session(folder))
    return backup


def write_session(path: Path, record: SessionRecord) -> None:
    """Replace SESSION.json atomically; after a power cut the old one may be back, which is caught up from the log."""
    text = json.dumps(encode(record), ensure_ascii=False, indent=1)
    write_atomic(path, text.encode("utf-8", "backslashreplace"), is_name_synced=False)


def _load_summary(folder: SessionFolder, size: int) -> tuple[SessionRecord, bool]:
    """Return the record in SESSION.json, empty if it does not match the log; and False if the file is invalid."""
    empty = SessionRecord(id=folder.id)
    try:
        record = read_summary(folder)
    except ValueError:
        return empty, False
    if record is None:
        # An unreadable entry, such as a pipe, is not overwritten: `sessions fsck` reports it.
        return empty, not os.path.lexists(folder.summary)
    fits = record.id == folder.id and 0 < record.log_bytes <= size
    return (record if fits else empty), True


def _catch_up(record: SessionRecord, log: Path, size: int) -> SessionRecord:
    """Return the record with the rest of the log added."""
    if record.log_bytes == size:
        return record
    if not _is_line_end(log, record.log_bytes):
        record = SessionRecord(id=record.id)
    builder, end = _SummaryBuilder(record), record.log_bytes
    for line in read_lines(log, record.log_bytes):
        builder.apply(line)
        end = line.end
    return builder.build(end) if end != record.log_bytes else record


def _is_line_end(log: Path, offset: int) -> bool:
    if offset == 0:
        return True
    with open_regular(log) as file:
        file.seek(offset - 1)
        return file.read(1) == b"\n"
