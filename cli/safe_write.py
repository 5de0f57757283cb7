"""Output files named by the user: written exactly there, never through a symlink planted in a workspace."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

# Symlinks here belong to the system: /dev/stdout, /dev/fd/3.
_SYSTEM_DIRS = (Path("/dev"), Path("/proc"))
IS_SYMLINK = "it is a symbolic link"


def write_user_file(path: Path, text: str, folders: Iterable[Path] = ()) -> None:
    """Write a file; raise OSError also for a symlink that commands in the cwd or `folders` could have created."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    if not any(map(path.absolute().is_relative_to, _SYSTEM_DIRS)):
        _check_path(path, (Path.cwd(), *folders))
        # A named pipe in place of the file must not block the exit.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags, 0o666)
    except OSError as error:
        raise OSError(error.errno, IS_SYMLINK if error.errno == errno.ELOOP else error.strerror, str(path)) from error
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _check_path(path: Path, folders: Iterable[Path]) -> None:
    """Refuse a path inside one of the folders that resolves to a place outside of it."""
    parents = [parent.resolve() for parent in Path(os.path.abspath(path)).parents]  # noqa: PTH100 (no link followed)
    real = path.resolve()
    for folder in (folder.resolve() for folder in folders):
        if folder in parents and not real.is_relative_to(folder):
            raise OSError(errno.ELOOP, f"a symbolic link leads to {real}", str(path))
