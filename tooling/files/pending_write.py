"""A file about to change: its open folder and its name there; replaced whole or not at all."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tooling.contract.result import ToolError
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.files.regular_file import READ_FLAGS
from tooling.files.resolve import ResolvedPath, open_with_retry

# What is larger is neither edited nor replaced: its former content could not be kept.
MAX_CHANGED_BYTES = 20_000_000
_PARENT_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileContent(NamedTuple):
    """What a file holds, and the state it was in when that was read."""

    data: bytes
    status: os.stat_result

    @property
    def mode(self) -> int:
        """Return who may read, write and run it."""
        # The bits that lend rights to whoever runs a file do not survive a write by another one either.
        return stat.S_IMODE(self.status.st_mode) & 0o777


class PendingWrite:
    """Reads, replaces and removes one name in one open folder."""

    def __init__(self, folder: int, spot: ResolvedPath) -> None:
        self._folder_fd = folder
        self._name = os.path.basename(spot.relative_path)  # noqa: PTH119 (the way below is text, not a path of this process)
        self.display_path = spot.display_path

    def read(self) -> FileContent | None:
        """Return what is there now, or None; whatever may not be changed is a ToolError."""
        try:
            fd = os.open(self._name, READ_FLAGS, dir_fd=self._folder_fd)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(fd)
            self._check_writable(status)
            with os.fdopen(fd, "rb", closefd=False) as file:
                return FileContent(file.read(), status)
        finally:
            os.close(fd)

    def replace(self, data: bytes, *, over: FileContent | None, mode: int | None = None) -> None:
        """Put new content in place of what was read; readers see the old or the new, never a part."""
        temporary = f".windlass-{os.urandom(6).hex()}.tmp"
        try:
            self._write(temporary, data, over, mode)
            self._check_unchanged(over)
            os.rename(temporary, self._name, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._folder_fd)
            raise
        os.fsync(self._folder_fd)

    def remove(self, *, over: FileContent) -> None:
        """Remove what was read."""
        self._check_unchanged(over)
        os.unlink(self._name, dir_fd=self._folder_fd)
        os.fsync(self._folder_fd)

    def _check_writable(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{self.display_path} is a directory; only files can be changed.")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{self.display_path} is not a regular file and cannot be written.")
        if status.st_nlink > 1:
            raise ToolError(
                f"{self.display_path} has other names (hard links) that would not change with it; copy it first."
            )
        if status.st_size > MAX_CHANGED_BYTES:
            raise ToolError(f"{self.display_path} is larger than {MAX_CHANGED_BYTES} bytes; change it with a command.")

    def _check_unchanged(self, over: FileContent | None) -> None:
        """Make sure that nobody changed the file since it was read."""
        try:
            now = os.stat(self._name, dir_fd=self._folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            now = None
        if _identity(now) != _identity(over.status if over else None):
            raise ToolError(f"{self.display_path} was changed by something else meanwhile; read it again.")

    def _write(self, name: str, data: bytes, over: FileContent | None, mode: int | None) -> None:
        fd = os.open(name, _CREATE_FLAGS, 0o666 if over is None else 0o600, dir_fd=self._folder_fd)
        with os.fdopen(fd, "wb") as file:
            if over is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, over.status.st_uid, over.status.st_gid)
            if mode is not None or over is not None:
                os.fchmod(fd, over.mode if mode is None and over else mode or 0)
            file.write(data)
            file.flush()
            os.fsync(fd)


@contextlib.contextmanager
def open_for_write(find: Callable[[], ResolvedPath], *, makes_folders: bool) -> Iterator[PendingWrite]:
    """Open the folder of a file that is about to change; what the system refuses is a ToolError."""
    shown = ""

    def open_folder(spot: ResolvedPath) -> int:
        nonlocal shown
        shown = spot.display_path
        if spot.relative_path == ".":
            raise ToolError(f"{spot.display_path} is a directory; only files can be changed.")
        return _open_folder(spot, makes_folders=makes_folders)

    try:
        folder, spot = open_with_retry(find, open_folder)
        try:
            yield PendingWrite(folder, spot)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise ToolError(f"{shown} does not exist.") from None
    except OSError as error:
        raise ToolError(f"{shown} cannot be written: {error.strerror or error}.") from error


def _open_folder(spot: ResolvedPath, *, makes_folders: bool) -> int:
    parent = os.path.dirname(spot.relative_path)  # noqa: PTH120 (the way below is text, not a path of this process)
    root = spot.open_root()
    try:
        try:
            return open_beneath(root, parent or ".", _PARENT_FLAGS)
        except FileNotFoundError:
            if not makes_folders:
                raise
        _make_folders(root, parent)
        return open_beneath(root, parent, _PARENT_FLAGS)
    finally:
        os.close(root)


def _make_folders(root: int, path: str) -> None:
    """Make the folders of a path one by one, each in the one opened before it."""
    folder = os.dup(root)
    try:
        for part in path.split("/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            below = os.open(part, DIR_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = below
    finally:
        os.close(folder)


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_nlink
