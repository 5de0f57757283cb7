"""All sessions at a glance, the newest first: their names and times are looked at, only what is shown is read."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from agent.sessions.lock import lock_holder
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_all_runs, read_head, read_session
from agent.sessions.views.titles import session_title
from agent.vocabulary.errors import InputError
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass

UNFINISHED, RUNNING, INTERRUPTED, UNREADABLE = "unfinished", "running", "interrupted", "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """The id of a session and when something last happened in it, in seconds since 1970."""

    id: str
    modified_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One line of a listing; `status` is that of the last run."""

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
    """Return every session, the one that something happened in last first; one that goes away meanwhile is left out."""
    names = store.ids()
    if not names:
        return []
    fd = os.open(store.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = [SessionEntry(id=name, modified_at=at) for name in names if (at := _modified_at(name, fd)) is not None]
    finally:
        os.close(fd)
    return sorted(found, key=lambda one: (one.modified_at, one.id), reverse=True)


def session_rows(store: SessionStore, sessions: list[SessionEntry], limit: int | None = None) -> Iterator[SessionRow]:
    """Yield the lines of a listing, reading no more than `limit` sessions."""
    return (session_row(store.folder_for(one.id)) for one in islice(sessions, limit))


def session_row(folder: SessionFolder) -> SessionRow:
    """Return the line of one session; one that cannot be read hides no other."""
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
    """Say how the last run of a session ended; without an ending it goes on, or its process was killed."""
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


LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of a listing of runs."""

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
    """A run and the session whose log tells of it."""

    folder: SessionFolder
    run_id: str


def run_rows(folder: SessionFolder) -> list[RunRow]:
    """Return a line for every run of a session, the newest first."""
    return _run_rows(folder, read_all_runs(folder))


def newest_runs(store: SessionStore, limit: int | None = None) -> list[RunRow]:
    """Return the newest runs of all sessions, looking no further back than needed.

    A session that cannot be read is left out, and told of only where there is nothing else.
    """
    rows: list[RunRow] = []
    problem: OSError | None = None
    for one in newest_sessions(store):
        # No run can have begun after the last thing that happened in its session.
        if limit is not None and len(rows) >= limit and rows[limit - 1].started_at >= _timestamp(one.modified_at):
            break
        try:
            rows += run_rows(store.folder_for(one.id))
        except OSError as error:
            problem = error
        if limit is not None:
            rows.sort(key=_start_key, reverse=True)
    if problem and not rows:
        raise problem
    return sorted(rows, key=_start_key, reverse=True)[:limit]


def find_run(store: SessionStore, name: str) -> RunRef:
    """Return a run by its id, the beginning of it, or `last`."""
    if name == LAST:
        found = {row.run_id: store.folder_for(row.session_id) for row in newest_runs(store, 1)}
    else:
        found = find_runs_by_prefix(store, name)
    if not found:
        raise InputError(f"there is no run {name!r}", "`agent runs list` shows them")
    if len(found) > 1:
        raise InputError(f"{name!r} is the beginning of {len(found)} runs", "give more of the id")
    ((run_id, folder),) = found.items()
    return RunRef(folder=folder, run_id=run_id)


def find_runs_by_prefix(store: SessionStore, name: str) -> dict[str, SessionFolder]:
    """Return the runs whose ids begin so, each with its session; an id that is whole leads to one run."""
    # Summaries hold the newest runs of each session; the whole logs are read only for older ones.
    problems: list[OSError] = []
    found = _match_runs(store, name, _ids_in_summary, problems) or _match_runs(store, name, _ids_in_log, problems)
    if problems and not found:
        # It may well be in there.
        raise problems[0]
    return found


def _match_runs(
    store: SessionStore,
    name: str,
    ids_in: Callable[[SessionFolder, str], Iterable[str]],
    problems: list[OSError],
) -> dict[str, SessionFolder]:
    """Return the runs whose ids begin so; in copies of a session the same run is found once, where it was used last."""
    found: dict[str, SessionFolder] = {}
    for one in newest_sessions(store) if name else ():
        folder = store.folder_for(one.id)
        try:
            for run_id in ids_in(folder, name):
                if run_id == name:
                    return {run_id: folder}
                found.setdefault(run_id, folder)
        except OSError as error:
            problems.append(error)
    return found


def _ids_in_summary(folder: SessionFolder, name: str) -> list[str]:
    try:
        is_current = folder.summary.stat().st_mtime_ns >= folder.events.stat().st_mtime_ns
        if is_current and name.encode() not in folder.summary.read_bytes():
            return []
    except OSError:
        pass
    return [run.run_id for run in read_session(folder).runs if run.run_id.startswith(name)]


def _ids_in_log(folder: SessionFolder, name: str) -> Iterator[str]:
    return (line.run_id for line in read_lines(folder.events) if line.run_id.startswith(name))


def run_status(found: RunRef, subtype: str) -> str:
    """Say how a run ended, that it goes on, or that it was cut off; only the last of its session can go on."""
    if subtype != UNFINISHED or _last_run(found.folder) == found.run_id:
        return session_status(found.folder, subtype)
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
    """Return a time as events write it, so that the two can be compared as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
