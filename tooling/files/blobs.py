"""Copies of files as they were, kept by their hash before they are changed."""

import hashlib
from pathlib import Path

from tooling.files.atomic_write import write_atomic


def content_hash(data: bytes) -> str:
    """Return the name that content is kept under."""
    return hashlib.sha256(data).hexdigest()


class BlobStore:
    """A folder of contents, each in a file named by its hash, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Store content so that it survives a crash, and return its hash."""
        name = content_hash(data)
        path = self._folder / name
        if path.exists() and self.read(name) is not None:
            return name
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, data)
        return name

    def read(self, name: str) -> bytes | None:
        """Return the content of a hash, or None when it is not there or no longer what it was."""
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        return data if content_hash(data) == name else None
