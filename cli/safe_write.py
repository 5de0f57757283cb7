"""Output files named by the user: written exactly there, never through a symlink planted in a workspace."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.files.links_out import check_links, is_of_system, opened_path

IS_SYMLINK = "it is a symbolic link"


def write_user_file(path: Path, text: str, folders: Iterable[Path] = ()) -> None:
    """Write a file; raise OSError also for a symlink that commands in the cwd or `folders` could have created."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    folders = (Path.cwd(), *folders)
    if not is_of_system(path):
        check_links(path, folders)
        # A named pipe in place of the file must not block the exit.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags, 0o666)
    except OSError as error:
        raise OSError(error.errno, IS_SYMLINK if error.errno == errno.ELOOP else error.strerror, str(path)) from error
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        # A folder may have become a link since the check; nothing has been changed yet.
        check_links(path, folders, opened_path(fd))
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.ftruncate(fd, 0)
        file.write(text)


def check_named_files(paths: Iterable[Path | None], folders: Iterable[Path]) -> None:
    """Raise InputError for a file of a flag that a planted symlink would redirect elsewhere."""
    for path in filter(None, paths):
        try:
            check_links(path, (Path.cwd(), *folders))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "name that file itself if you mean it") from error
