"""Opening and replacing regular files: never a FIFO or a device, never half a write."""

import contextlib
import io
import os
import stat
from pathlib import Path

from tooling.contract.result import ToolError

_SNIFF_BYTES = 8192
MAX_EDIT_BYTES = 20_000_000


def open_regular(path: Path, shown: str) -> io.BufferedReader:
    """Open a regular text file for reading; anything else is a ToolError that says what it is."""
    try:
        # Without O_NONBLOCK the open of a FIFO waits for a writer, for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ToolError(f"{shown} does not exist; look with list_directory or find_files.") from None
    except OSError as error:
        raise ToolError(f"{shown} cannot be opened: {error.strerror}.") from error
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        kind = "a directory; use list_directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{shown} is {kind}.")
    file = os.fdopen(fd, "rb")
    if b"\0" in file.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]:
        file.close()
        raise ToolError(f"{shown} is a binary file; inspect it with a command such as file or xxd.")
    return file


def read_whole(path: Path, shown: str) -> bytes:
    """Return all bytes of a regular text file of a sensible size."""
    with open_regular(path, shown) as file:
        data = file.read(MAX_EDIT_BYTES + 1)
    if len(data) > MAX_EDIT_BYTES:
        raise ToolError(f"{shown} is larger than {MAX_EDIT_BYTES} bytes; change it with a command.")
    return data


def replace_file(path: Path, data: bytes, shown: str) -> None:
    """Write a file so that readers see the old or the new content, never a part; mode and owner stay."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:80]}.{os.urandom(4).hex()}.tmp")
        before = _status(path)
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise ToolError(f"{shown} is not a regular file and cannot be written.")
        _write_new(temporary, data, before)
        try:
            os.replace(temporary, path)  # noqa: PTH105 (the same call, named as what it guarantees)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ToolError(f"{shown} cannot be written: {error.strerror or error}.") from error


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _write_new(path: Path, data: bytes, like: os.stat_result | None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            if like is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            file.write(data)
            file.flush()
            os.fsync(fd)
    except OSError:
        path.unlink(missing_ok=True)
        raise
