"""Files named by the user: symbolic links that a command could have planted must not lead outside."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

# Links here belong to the system: /dev/stdin, /dev/fd/3.
_SYSTEM_DIRS = (Path("/dev"), Path("/proc"))


def is_of_system(path: Path) -> bool:
    """Whether a path is one of the system's names for open files and devices."""
    return any(map(path.absolute().is_relative_to, _SYSTEM_DIRS))


def check_links(path: Path, folders: Iterable[Path], real: Path | None = None) -> None:
    """Raise OSError for a path inside one of the folders that leads to a place outside of it.

    `real` is the resolved path, if known.
    """
    if is_of_system(path):
        return
    parents = [parent.resolve() for parent in Path(os.path.abspath(path)).parents]  # noqa: PTH100 (no link followed)
    real = real or path.resolve()
    for folder in (folder.resolve() for folder in folders):
        if folder in parents and not real.is_relative_to(folder):
            raise OSError(errno.ELOOP, f"a symbolic link leads to {real}", str(path))


def open_named(path: Path, folders: Iterable[Path]) -> BinaryIO:
    """Open a file for reading; raises OSError for a link that commands in one of the folders could have planted."""
    file = path.open("rb")
    try:
        check_links(path, folders, opened_path(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def opened_path(fd: int) -> Path | None:
    """Return the path of an open file, which no link can change any more; None if the system does not provide it."""
    try:
        return Path(f"/proc/self/fd/{fd}").readlink()
    except OSError:
        return None
