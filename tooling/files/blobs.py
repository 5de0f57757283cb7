"""Copies of files as they were, kept by their hash before they are changed."""

import hashlib
import os
from pathlib import Path


def hash_of(data: bytes) -> str:
    """Return the name that content is kept under."""
    return hashlib.sha256(data).hexdigest()


class BlobStore:
    """A folder of contents, each in a file named by its hash, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, data: bytes) -> str:
        """Store content so that it survives a crash, and return its hash."""
        name = hash_of(data)
        path = self._folder / name
        if path.exists() and self.read(name) is not None:
            return name
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._folder / f"{name}.{os.urandom(4).hex()}.tmp"
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
        _sync(self._folder)
        return name

    def read(self, name: str) -> bytes | None:
        """Return the content of a hash, or None when it is not there or no longer what it was."""
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        return data if hash_of(data) == name else None


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
