"""Replace files atomically: a reader sees the old content or the new, never a part."""

import itertools
import os
from pathlib import Path

# A process killed during a write leaves a file with this suffix; `agent sessions fsck` removes it.
TEMP_SUFFIX = ".tmp"


def write_atomic(path: Path, data: bytes, *, is_synced: bool = True) -> None:
    """Replace the file with `data`, durably if `is_synced`; on failure the old file is unchanged."""
    temporary = path.parent / f".{path.name}.{os.urandom(4).hex()}{TEMP_SUFFIX}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if is_synced:
                os.fsync(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if is_synced:
        fsync_dir(path.parent)


def fsync_dir(folder: Path) -> None:
    """Flush a folder to disk, so that the names of new files survive a crash."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def backup_path(path: Path, mark: str) -> Path:
    """Return an unused path next to a file for a backup of it."""
    names = itertools.chain([f"{path.name}.{mark}"], (f"{path.name}.{mark}-{number}" for number in itertools.count(2)))
    return next(backup for name in names if not (backup := path.with_name(name)).exists())
