"""Opens regular files only: a FIFO, device, socket or folder in their place is an error, and never blocks."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

NOT_REGULAR = "not a regular file"


class NotRegularFile(OSError):
    """The path is not a regular file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, NOT_REGULAR, str(path))


def open_fd(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file and return its descriptor. Raises NotRegularFile for anything else."""
    # Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = _create_or_open(path, flags, mode) if flags & os.O_CREAT else os.open(path, flags)
    except OSError as error:
        # A socket, a device without a driver, a FIFO without a reader, a folder opened for writing.
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EISDIR):
            raise NotRegularFile(path) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegularFile(path)
    return fd


def _create_or_open(path: Path, flags: int, mode: int) -> int:
    """Open a file, creating it if missing: at this path, never at the target of a dangling link."""
    while True:
        try:
            return os.open(path, flags & ~os.O_CREAT)
        except FileNotFoundError:
            pass
        try:
            return os.open(path, flags | os.O_EXCL, mode)
        except FileExistsError:
            # Either a dangling link, or another process was faster.
            if path.is_symlink():
                raise NotRegularFile(path) from None


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading."""
    return os.fdopen(open_fd(path), "rb")


def read_regular(path: Path, *, limit: int | None = None) -> bytes:
    """Return the content of a regular file; one of more than `limit` bytes raises OSError."""
    with open_regular(path) as file:
        if limit is None:
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return data


def stat_regular(path: Path) -> os.stat_result:
    """Return the status of a regular file. Raises NotRegularFile for anything else."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularFile(path)
    return status
