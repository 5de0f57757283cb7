"""Which sessions have grown old, and what crashes left lying about."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent.sessions.lock import holder_of
from agent.sessions.removing import REMOVED, clear_away, remove
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.copying import UNFINISHED
from agent.sessions.views.listing import newest_first
from agent.vocabulary.errors import SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import TEMPORARY

# Nobody works this long on a file that is put in place whole.
_ORPHANED_AFTER_S = 3600
_EPHEMERAL = "windlass-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """A session that may go: when something last happened in it, and what it takes."""

    folder: SessionFolder
    at: float
    size_bytes: int


def old_sessions(store: SessionStore, *, older_than_s: float | None, keep: int) -> list[Old]:
    """Return the sessions beyond the newest `keep` that are older than that, the oldest first; none that is running."""
    limit = None if older_than_s is None else time.time() - older_than_s
    beyond = [one for one in newest_first(store)[keep:] if limit is None or one.at < limit]
    folders = [(store.named(one.id), one.at) for one in reversed(beyond)]
    return [
        Old(folder=folder, at=at, size_bytes=size_of(folder.root))
        for folder, at in folders
        if not folder.root.is_symlink() and holder_of(folder) is None
    ]


def collect(store: SessionStore, old: Old) -> bool:
    """Remove an old session, unless something has begun in it meanwhile."""
    try:
        is_untouched = old.folder.events.stat().st_mtime <= old.at
    except OSError:
        is_untouched = old.folder.root.exists()
    if not is_untouched or holder_of(old.folder) is not None:
        return False
    try:
        remove(store, old.folder, patience_s=None)
    except SessionBusy:
        return False
    return True


def orphans(store: SessionStore) -> list[Path]:
    """Return half-made and half-removed things of processes that are long gone."""
    found = [*_left_over(store.root), *_ephemeral_ones()]
    for folder in store.all():
        if holder_of(folder) is None:
            found += [*_left_over(folder.root), *_left_over(folder.steps)]
    return found


def sweep(path: Path) -> None:
    """Delete an orphan."""
    if path.is_dir() and not path.is_symlink():
        clear_away(path)
    else:
        path.unlink(missing_ok=True)


def size_of(tree: Path) -> int:
    """Return how many bytes the files of a folder hold; links count nothing."""
    try:
        with os.scandir(tree) as entries:
            return sum(_size(entry) for entry in entries)
    except OSError:
        return 0


def _size(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_dir(follow_symlinks=False):
            return size_of(Path(entry.path))
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0


def _left_over(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in entries if _is_temporary(entry.name)]
    except OSError:
        return
    yield from (path for path in found if _is_old(path))


def _is_temporary(name: str) -> bool:
    return name.startswith((UNFINISHED, REMOVED)) or name.endswith(TEMPORARY)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > _ORPHANED_AFTER_S
    except OSError:
        return False


def _ephemeral_ones() -> Iterator[Path]:
    """Yield the folders of `--ephemeral` runs that were killed; only this user's, and only those nobody runs in."""
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{_EPHEMERAL}*")):
        try:
            is_ours = path.lstat().st_uid == os.getuid() and not path.is_symlink() and (path / "sessions").is_dir()
        except OSError:
            continue
        if is_ours and _is_old(path) and all(holder_of(folder) is None for folder in SessionStore(path).all()):
            yield path
