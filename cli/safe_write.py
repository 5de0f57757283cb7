"""Files that a person asked for: written where their name says, never where a link in a workspace leads."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

# Here links are the system's own: /dev/stdout, /dev/fd/3.
_SYSTEM_DIRS = (Path("/dev"), Path("/proc"))
_LINK = "it is a link"


def write_user_file(path: Path, text: str, folders: Iterable[Path] = ()) -> None:
    """Write a text; raises OSError, also for a link that commands in the working folder or `folders` may have made."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    if not any(map(path.absolute().is_relative_to, _SYSTEM_DIRS)):
        _check_path(path, (Path.cwd(), *folders))
        # A pipe in place of the file must not hold up the end.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags, 0o666)
    except OSError as error:
        raise OSError(error.errno, _LINK if error.errno == errno.ELOOP else error.strerror, str(path)) from error
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def _check_path(path: Path, folders: Iterable[Path]) -> None:
    """Refuse a name inside of a folder that leads out of it."""
    ways = [parent.resolve() for parent in Path(os.path.abspath(path)).parents]  # noqa: PTH100 (no link followed)
    real = path.resolve()
    for folder in (folder.resolve() for folder in folders):
        if folder in ways and not real.is_relative_to(folder):
            raise OSError(errno.ELOOP, f"a link leads from there to {real}", str(path))
