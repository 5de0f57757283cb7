"""Lists sessions and runs, newest first, reading only the sessions it shows."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from agent.sessions.lock import lock_holder
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import LONGER_PREFIX, SessionFolder, SessionStore, is_short_for
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_all_runs, read_head, read_session
from agent.sessions.views.titles import session_title
from agent.vocabulary.errors import InputError
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import read_regular

UNFINISHED, RUNNING, INTERRUPTED, UNREADABLE = "unfinished", "running", "interrupted", "unreadable"
LAST = "last"
# So many runs in a row that did nothing are skipped.
_MAX_IDLE_RUNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """The id of a session and its last modification, in seconds since 1970."""

    id: str
    modified_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One row of a listing of sessions; `status` is that of the last run."""

    id: str
    title: str
    created_at: str
    updated_at: str
    cwd: str
    runs: int
    status: str
    last_request: str
    cost_usd: float | None


def newest_sessions(store: SessionStore) -> list[SessionEntry]:
    """Return all sessions, most recently modified first; sessions removed meanwhile are skipped."""
    ids = store.ids()
    if not ids:
        return []
    fd = os.open(store.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        entries = [SessionEntry(id=name, modified_at=at) for name in ids if (at := _modified_at(name, fd)) is not None]
    finally:
        os.close(fd)
    return sorted(entries, key=lambda entry: (entry.modified_at, entry.id), reverse=True)


def session_rows(store: SessionStore, sessions: list[SessionEntry], limit: int | None = None) -> Iterator[SessionRow]:
    """Yield the rows of a listing, reading at most `limit` sessions."""
    return (session_row(store.folder_for(entry.id)) for entry in islice(sessions, limit))


def session_row(folder: SessionFolder) -> SessionRow:
    """Return the row of one session; an unreadable one gets a row that says so."""
    try:
        head = read_head(folder)
    except OSError as error:
        return _unreadable_row(folder, error)
    return SessionRow(
        id=head.id,
        title=session_title(folder, head),
        created_at=head.created_at,
        updated_at=head.updated_at,
        cwd=head.cwd,
        runs=head.run_count,
        status=session_status(folder, head.last_subtype),
        last_request=head.last_request,
        cost_usd=head.cost_usd,
    )


def _unreadable_row(folder: SessionFolder, error: OSError) -> SessionRow:
    return SessionRow(
        id=folder.id,
        title=f"(cannot be read: {error.strerror})",
        created_at="",
        updated_at="",
        cwd="",
        runs=0,
        status=UNREADABLE,
        last_request="",
        cost_usd=None,
    )


def session_status(folder: SessionFolder, last_subtype: str) -> str:
    """Return the status of a session's last run; without an end it is running, or its process was killed."""
    if last_subtype != UNFINISHED:
        return last_subtype or "empty"
    return RUNNING if lock_holder(folder) is not None else INTERRUPTED


def _modified_at(name: str, sessions: int) -> float | None:
    for path in (f"{name}/events.jsonl", name):
        try:
            return os.stat(path, dir_fd=sessions).st_mtime
        except OSError:
            continue
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One row of a listing of runs."""

    run_id: str
    session_id: str
    started_at: str
    request: str
    status: str
    exit_code: int | None
    steps: int
    steps_ok: int
    duration_ms: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """A run and the session it belongs to."""

    folder: SessionFolder
    run_id: str


def run_rows(folder: SessionFolder) -> list[RunRow]:
    """Return a row for every run of a session, newest first."""
    return _run_rows(folder, read_all_runs(folder))


def newest_runs(store: SessionStore, limit: int | None = None) -> list[RunRow]:
    """Return the newest runs of all sessions, reading no more sessions than needed.

    Unreadable sessions are skipped; their OSError is raised only if there are no rows at all.
    """
    rows: list[RunRow] = []
    problem: OSError | None = None
    for entry in newest_sessions(store):
        # No run can have started after its session was last modified.
        if limit is not None and len(rows) >= limit and rows[limit - 1].started_at >= _timestamp(entry.modified_at):
            break
        try:
            rows += run_rows(store.folder_for(entry.id))
        except OSError as error:
            problem = error
        if limit is not None:
            rows.sort(key=_start_key, reverse=True)
    if problem and not rows:
        raise problem
    return sorted(rows, key=_start_key, reverse=True)[:limit]


def find_run(store: SessionStore, prefix: str) -> RunRef:
    """Return the run with this id or unique id prefix, or for `last` the newest one that got as far as its request."""
    if prefix == LAST:
        found = {row.run_id: store.folder_for(row.session_id) for row in _last_rows(store)}
    else:
        found = find_runs_by_prefix(store, prefix)
    if not found:
        raise InputError(f"there is no run {prefix!r}", "`agent runs list` shows them")
    if len(found) > 1:
        raise InputError(f"{prefix!r} matches {len(found)} runs", LONGER_PREFIX)
    ((run_id, folder),) = found.items()
    return RunRef(folder=folder, run_id=run_id)


def _last_rows(store: SessionStore) -> list[RunRow]:
    """Return the newest run, if there is one, without those that ended with nothing done.

    A resume that another one was faster than is such a run.
    """
    newest = newest_runs(store, 1)
    candidates = newest if any(map(_has_work, newest)) else newest_runs(store, _MAX_IDLE_RUNS)
    return ([row for row in candidates if _has_work(row)] or newest)[:1]


def _has_work(row: RunRow) -> bool:
    return bool(row.request or row.steps) or row.exit_code is None


def find_runs_by_prefix(store: SessionStore, prefix: str) -> dict[str, SessionFolder]:
    """Return the runs whose ids start with `prefix`, with their sessions; a complete id matches only one run."""
    # Summaries list the newest runs of each session; the logs are read only for older ones.
    problems: list[OSError] = []
    found = _match_runs(store, prefix, _ids_in_summary, problems) or _match_runs(store, prefix, _ids_in_log, problems)
    if problems and not found:
        # The run may be in an unreadable session.
        raise problems[0]
    return found


def _match_runs(
    store: SessionStore,
    prefix: str,
    ids_in: Callable[[SessionFolder, str], Iterable[str]],
    problems: list[OSError],
) -> dict[str, SessionFolder]:
    """Return matching runs; a run that also exists in forks is returned once, with the most recent session."""
    found: dict[str, SessionFolder] = {}
    for entry in newest_sessions(store) if prefix else ():
        folder = store.folder_for(entry.id)
        try:
            for run_id in ids_in(folder, prefix):
                if run_id == prefix:
                    return {run_id: folder}
                found.setdefault(run_id, folder)
        except OSError as error:
            problems.append(error)
    return found


def _ids_in_summary(folder: SessionFolder, prefix: str) -> list[str]:
    try:
        is_current = folder.summary.stat().st_mtime_ns >= folder.events.stat().st_mtime_ns
        if is_current and prefix.encode() not in read_regular(folder.summary):
            return []
    except OSError:
        pass
    return [run.run_id for run in read_session(folder).runs if is_short_for(prefix, run.run_id)]


def _ids_in_log(folder: SessionFolder, prefix: str) -> Iterator[str]:
    return (line.run_id for line in read_lines(folder.events) if is_short_for(prefix, line.run_id))


def run_status(run: RunRef, subtype: str) -> str:
    """Return a run's subtype, or whether it is running or was interrupted; only a session's last run can be running."""
    if subtype != UNFINISHED or _last_run(run.folder) == run.run_id:
        return session_status(run.folder, subtype)
    return INTERRUPTED


def _last_run(folder: SessionFolder) -> str:
    return next((run.run_id for run in reversed(read_session(folder).runs)), "")


def _run_rows(folder: SessionFolder, record: SessionRecord) -> list[RunRow]:
    *earlier, last = record.runs or (None,)
    rows = [
        _run_row(record.id, run, INTERRUPTED if run.subtype == UNFINISHED else run.subtype) for run in earlier if run
    ]
    rows += [_run_row(record.id, last, session_status(folder, last.subtype))] if last else []
    return rows[::-1]


def _run_row(session_id: str, run: RunRecord, status: str) -> RunRow:
    return RunRow(
        run_id=run.run_id,
        session_id=session_id,
        started_at=run.date,
        request=run.user,
        status=status,
        exit_code=run.exit_code,
        steps=len(run.steps),
        steps_ok=sum(is_success(step.status) for step in run.step_results),
        duration_ms=run.duration_ms,
        cost_usd=run.known_usage.cost_usd if run.known_usage else None,
    )


def _start_key(row: RunRow) -> tuple[str, str]:
    return row.started_at, row.run_id


def _timestamp(seconds: float) -> str:
    """Format a time as in events, so that the two can be compared as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
