"""A pending change to one file: read, replaced atomically or removed within its open parent folder."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tooling.contract.result import ToolError
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.files.regular_file import READ_FLAGS
from tooling.files.resolve import ResolvedPath, open_with_retry

# Larger files are neither edited nor replaced, because their content could not be saved for undo.
MAX_CHANGED_BYTES = 20_000_000
CHANGED_CONCURRENTLY = "was changed by another program in the meantime; read it again."
_PARENT_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileContent(NamedTuple):
    """The content of a file and its status when it was read."""

    data: bytes
    status: os.stat_result

    @property
    def mode(self) -> int:
        """The permission bits."""
        # Without setuid and setgid: the kernel clears these too when another user writes to the file.
        return stat.S_IMODE(self.status.st_mode) & 0o777


class PendingWrite:
    """Reads, replaces and removes one file in an open folder."""

    def __init__(self, folder: int, target: ResolvedPath) -> None:
        self._folder_fd = folder
        self._name = os.path.basename(target.relative_path)  # noqa: PTH119 (relative to the root, not to our directory)
        self.display_path = target.display_path

    def read(self) -> FileContent | None:
        """Return the current content, or None; raise ToolError if the file must not be changed."""
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
        """Replace the content that was read; other readers see the old or the new content, never a part."""
        with self.stage(data, over=over, mode=mode) as commit:
            commit()

    @contextlib.contextmanager
    def stage(self, data: bytes, *, over: FileContent | None, mode: int | None = None) -> Iterator[Callable[[], None]]:
        """Write new content next to the file, and yield the function that replaces the file with it."""
        temporary = f".windlass-{os.urandom(6).hex()}.tmp"

        def commit() -> None:
            self.check_unchanged(over)
            os.rename(temporary, self._name, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
            os.fsync(self._folder_fd)

        try:
            self._write(temporary, data, over, mode)
            yield commit
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._folder_fd)

    def remove(self, *, over: FileContent) -> None:
        """Remove the file that was read."""
        self.check_unchanged(over)
        os.unlink(self._name, dir_fd=self._folder_fd)
        os.fsync(self._folder_fd)

    def status(self) -> os.stat_result | None:
        """Return the status of the entry, not following a link, or None."""
        try:
            return os.stat(self._name, dir_fd=self._folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read_link(self) -> bytes:
        """Return the target of the link."""
        return os.fsencode(os.readlink(self._name, dir_fd=self._folder_fd))

    def make_link(self, target: bytes) -> None:
        """Create a link at an unused path."""
        os.symlink(os.fsdecode(target), self._name, dir_fd=self._folder_fd)
        os.fsync(self._folder_fd)

    def make_folder(self, mode: int | None) -> None:
        """Create a folder at an unused path."""
        os.mkdir(self._name, dir_fd=self._folder_fd)
        self.set_mode(mode)
        os.fsync(self._folder_fd)

    def set_mode(self, mode: int | None) -> None:
        """Change the mode of the folder."""
        if mode is not None:
            fd = os.open(self._name, _PARENT_FLAGS, dir_fd=self._folder_fd)
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def remove_other(self, *, is_folder: bool) -> None:
        """Remove the link or the empty folder."""
        (os.rmdir if is_folder else os.unlink)(self._name, dir_fd=self._folder_fd)
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

    def check_unchanged(self, over: FileContent | None) -> None:
        """Raise ToolError if the file changed since it was read."""
        if _identity(self.status()) != _identity(over.status if over else None):
            raise ToolError(f"{self.display_path} {CHANGED_CONCURRENTLY}")

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
def open_for_write(resolve: Callable[[], ResolvedPath], *, makes_folders: bool) -> Iterator[PendingWrite]:
    """Open the parent folder of a file to change it; raise ToolError if the system refuses anything."""
    display_path = ""

    def open_folder(target: ResolvedPath) -> int:
        nonlocal display_path
        display_path = target.display_path
        return open_parent(target, makes_folders=makes_folders)

    try:
        folder, target = open_with_retry(resolve, open_folder)
        try:
            yield PendingWrite(folder, target)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise ToolError(f"{display_path} does not exist.") from None
    except OSError as error:
        raise ToolError(f"{display_path} cannot be written: {error.strerror or error}.") from error


def open_parent(target: ResolvedPath, *, makes_folders: bool = False) -> int:
    """Open the folder of a file; raises OSError, and ToolError if the path is a root folder itself."""
    if target.relative_path == ".":
        raise ToolError(f"{target.display_path} is a directory; only files can be changed.")
    parent = os.path.dirname(target.relative_path)  # noqa: PTH120 (relative to the root, not to our directory)
    root = target.open_root()
    try:
        try:
            return open_beneath(root, parent or ".", _PARENT_FLAGS)
        except FileNotFoundError:
            if not makes_folders:
                raise
        _create_folders(root, parent)
        return open_beneath(root, parent, _PARENT_FLAGS)
    finally:
        os.close(root)


def _create_folders(root: int, path: str) -> None:
    """Create the missing folders of a path, each relative to the open descriptor of its parent."""
    folder = os.dup(root)
    try:
        for part in path.split("/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            child = os.open(part, DIR_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = child
    finally:
        os.close(folder)


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_nlink
