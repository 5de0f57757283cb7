"""All sessions at a glance, the newest first: their names and times are looked at, only what is shown is read."""

import os
from collections.abc import Iterator
from itertools import islice

from agent.sessions.lock import holder_of
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.session_summary import read_head
from agent.sessions.views.titles import title_of
from tooling.contract.fast_dataclass import dataclass

UNFINISHED, RUNNING, INTERRUPTED, UNREADABLE = "unfinished", "running", "interrupted", "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The id of a session and when something last happened in it, in seconds since 1970."""

    id: str
    at: float


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


def newest_first(store: SessionStore) -> list[Touched]:
    """Return every session, the one that something happened in last first; one that goes away meanwhile is left out."""
    names = store.names()
    if not names:
        return []
    fd = os.open(store.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = [Touched(id=name, at=at) for name in names if (at := _touched(name, fd)) is not None]
    finally:
        os.close(fd)
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def rows_of(store: SessionStore, sessions: list[Touched], limit: int | None = None) -> Iterator[SessionRow]:
    """Yield the lines of a listing, reading no more than `limit` sessions."""
    return (row_of(store.named(one.id)) for one in islice(sessions, limit))


def row_of(folder: SessionFolder) -> SessionRow:
    """Return the line of one session; one that cannot be read hides no other."""
    try:
        head = read_head(folder)
    except OSError as error:
        return _unreadable(folder, error)
    return SessionRow(
        id=head.id,
        title=title_of(folder, head),
        created_at=head.created_at,
        updated_at=head.updated_at,
        cwd=head.cwd,
        runs=head.run_count,
        status=status_of(folder, head.last_subtype),
        last_request=head.last_request,
        cost_usd=head.cost_usd,
    )


def _unreadable(folder: SessionFolder, error: OSError) -> SessionRow:
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


def status_of(folder: SessionFolder, last_subtype: str) -> str:
    """Say how the last run of a session ended; without an ending it goes on, or its process was killed."""
    if last_subtype != UNFINISHED:
        return last_subtype or "empty"
    return RUNNING if holder_of(folder) is not None else INTERRUPTED


def _touched(name: str, sessions: int) -> float | None:
    for path in (f"{name}/events.jsonl", name):
        try:
            return os.stat(path, dir_fd=sessions).st_mtime
        except OSError:
            continue
    return None
