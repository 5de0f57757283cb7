"""A copy of a session under an id of its own: what happened up to now, from here on apart."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from agent.sessions.store import SessionFolder, SessionLock, SessionStore, new_session_id
from agent.vocabulary.errors import InputError

# Begins with a dot, so that no reader of sessions takes a half-made copy for one.
PARTIAL_COPY_PREFIX = ".copy-"
_NOT_COPIED = frozenset({"lock", "events.jsonl", "SESSION.json"})


def fork(store: SessionStore, source: SessionFolder, new_id: str | None = None) -> SessionFolder:
    """Copy a session with its files; the original must not be running, and is not changed.

    The copy appears whole or not at all. Its log says its own id and its own workspace; texts stay as they were said.
    """
    target = store.folder_for(new_id or new_session_id(datetime.now(UTC)))
    if os.path.lexists(target.root):
        raise InputError(f"there is already a session {target.id}", "choose another id, or none")
    half = store.root / f"{PARTIAL_COPY_PREFIX}{target.id}.{os.getpid()}"
    lock = SessionLock(source)
    try:
        half.mkdir(mode=0o700)
        _copy_files(source.root, half)
        _copy_log(source, target, half)
        # SESSION.json is made anew from the log when somebody asks for it.
        half.rename(target.root)
    except OSError as error:
        problem = f"session {source.id} could not be copied: {error.strerror or error}"
        raise InputError(problem, "free some space, or look at the folder's rights") from error
    finally:
        lock.release()
        shutil.rmtree(half, ignore_errors=True)
    return target


def _copy_files(source: Path, half: Path) -> None:
    for entry in sorted(source.iterdir()):
        if entry.name in _NOT_COPIED or entry.name.endswith(".tmp"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, half / entry.name, symlinks=True, ignore=_special_files)
        elif entry.is_file():
            shutil.copy2(entry, half / entry.name, follow_symlinks=False)


def _special_files(folder: str, names: list[str]) -> Iterable[str]:
    """Name what cannot be copied: pipes, sockets and devices."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _copy_log(source: SessionFolder, target: SessionFolder, half: Path) -> None:
    fd = os.open(half / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as copy:
        for line in _lines(source.events):
            copy.write(_rewrite_line(line, source, target))
        copy.flush()
        os.fsync(copy.fileno())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as lines:
            yield from lines
    except FileNotFoundError:
        return


def _rewrite_line(line: bytes, source: SessionFolder, target: SessionFolder) -> bytes:
    """Return a line of the log as the copy's own; one that was torn by a crash stays as it is."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict):
        return line
    event["session_id"] = target.id
    if event.get("type") == "init":
        for place in ("cwd", "workspace"):
            if event.get(place) == str(source.workspace):
                event[place] = str(target.workspace)
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
