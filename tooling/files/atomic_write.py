"""Files that are replaced in one step: a reader sees the old one or the new one, never half of one."""

import itertools
import os
import secrets
from pathlib import Path

# What a kill in the middle leaves behind ends so; `agent sessions fsck` sweeps it out.
TEMP_SUFFIX = ".tmp"


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` in the place of the file so that it survives a crash; on failure the old file stays."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    fsync_dir(path.parent)


def fsync_dir(folder: Path) -> None:
    """Let a file's name survive a crash as its content does."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def backup_path(path: Path, mark: str) -> Path:
    """Return a free name beside a file for what must not be lost with it."""
    names = itertools.chain([f"{path.name}.{mark}"], (f"{path.name}.{mark}-{number}" for number in itertools.count(2)))
    return next(place for name in names if not (place := path.with_name(name)).exists())
