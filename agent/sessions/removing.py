"""Removing a session: its running work is ended first, and nothing outside its folder is touched."""

import os
import secrets
import shutil
import signal
import time
from pathlib import Path

from agent.sessions.lock import has_open, holder_of
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from agent.vocabulary.errors import AgentError, InputError, SessionBusy

# Begins with a dot, so that no reader of sessions takes what is left for one.
REMOVED = ".removed-"
PATIENCE_S = 15.0
_LOOK_S = 0.05


def remove(store: SessionStore, folder: SessionFolder, *, patience_s: float | None = PATIENCE_S) -> None:
    """Remove a session; a run in it is asked to end, and one that does not in time keeps it, with None at once."""
    if folder.root.is_symlink():
        raise InputError(f"session {folder.id} is a link to {folder.root.readlink()}", "remove the link by hand")
    lock = SessionLock(folder) if patience_s is None else _taken(folder, patience_s)
    grave = store.root / f"{REMOVED}{folder.id}.{secrets.token_hex(4)}"
    try:
        # From this moment on nobody finds it, however long the deleting takes.
        folder.root.rename(grave)
    finally:
        lock.release()
    clear_away(grave)


def clear_away(tree: Path) -> None:
    """Delete a folder with all that is in it, also what its owner may not write; links are not followed."""
    try:
        shutil.rmtree(tree)
    except PermissionError:
        _open_up(tree)
        try:
            shutil.rmtree(tree)
        except OSError as error:
            raise AgentError(f"{tree} could not be deleted: {error.strerror}") from error
    except FileNotFoundError:
        # Somebody else clears away the same.
        shutil.rmtree(tree, ignore_errors=True)


def _taken(folder: SessionFolder, patience_s: float) -> SessionLock:
    """Return the session's lock, after whoever holds it was asked to end and did."""
    deadline = time.monotonic() + patience_s
    asked: set[int] = set()
    while True:
        try:
            return SessionLock(folder)
        except SessionBusy as busy:
            pid = holder_of(folder)
            if pid is not None and pid not in asked and _may_be_asked(pid, folder):
                os.kill(pid, signal.SIGTERM)
                asked.add(pid)
            if time.monotonic() > deadline:
                raise SessionBusy(f"{busy.message}, and did not end", "end that process, then try again") from busy
        time.sleep(_LOOK_S)


def _may_be_asked(pid: int, folder: SessionFolder) -> bool:
    """Say whether this is surely the process that holds the session, and another one than ours."""
    return pid != os.getpid() and has_open(pid, folder.lock)


def _open_up(tree: Path) -> None:
    """Let the owner into every folder below; some tools leave folders that nobody may write."""
    for path, names, _ in os.walk(tree):
        for name in names:
            below = Path(path, name)
            if not below.is_symlink():
                below.chmod(0o700)
