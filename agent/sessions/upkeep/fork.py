"""Forks a session: copies it under a new id."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent.sessions.store import SessionFolder, SessionLock, SessionStore, new_session_id
from agent.sessions.views.session_summary import read_log, write_session
from agent.vocabulary.errors import InputError
from tooling.files.open_regular import open_regular

# Starts with a dot, so that an incomplete copy is never listed as a session.
PARTIAL_COPY_PREFIX = ".copy-"
_NOT_COPIED = frozenset({"lock", "events.jsonl", "SESSION.json", "checkpoint"})


def fork(store: SessionStore, source: SessionFolder, new_id: str | None = None) -> SessionFolder:
    """Copy a session with its files; the original is not changed. Raises SessionBusy if it is running.

    The copy appears complete or not at all. Its log has the new id and workspace; message texts are not rewritten.
    """
    target = store.folder_for(new_id or new_session_id(datetime.now(UTC)))
    if os.path.lexists(target.root):
        raise InputError(f"session {target.id} already exists", "choose another id, or omit it")
    partial = store.root / f"{PARTIAL_COPY_PREFIX}{target.id}.{os.getpid()}"
    lock = SessionLock(source)
    try:
        partial.mkdir(mode=0o700)
        _copy_files(source.root, partial)
        _copy_log(source, target, partial)
        copy = SessionFolder(id=target.id, root=partial)
        write_session(copy.summary, read_log(copy))
        partial.rename(target.root)
    except OSError as error:
        problem = f"session {source.id} could not be copied: {error.strerror or error}"
        raise InputError(problem, "check the free disk space and the permissions of the folder") from error
    finally:
        lock.release()
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _copy_files(source: Path, partial: Path) -> None:
    for entry in sorted(source.iterdir()):
        if entry.name in _NOT_COPIED or entry.name.endswith(".tmp"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, partial / entry.name, symlinks=True, ignore=_special_files)
        elif entry.is_file():
            shutil.copy2(entry, partial / entry.name, follow_symlinks=False)


def _special_files(folder: str, names: list[str]) -> Iterable[str]:
    """Return the names of files that cannot be copied: pipes, sockets and devices."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _copy_log(source: SessionFolder, target: SessionFolder, partial: Path) -> None:
    fd = os.open(partial / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as copy:
        for line in _lines(source.events):
            copy.write(rewrite_line(line, target.id, {str(source.workspace): str(target.workspace)}))
        copy.flush()
        os.fsync(copy.fileno())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with open_regular(path) as lines:
            yield from lines
    except FileNotFoundError:
        return


def rewrite_line(line: bytes, session_id: str, workspaces: Mapping[str, str]) -> bytes:
    """Return a line of a log with the id and the workspace of a copy; an incomplete line is returned unchanged."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict):
        return line
    event["session_id"] = session_id
    if event.get("type") == "init":
        for field in ("cwd", "workspace"):
            event[field] = workspaces.get(str(event.get(field)), event.get(field))
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
