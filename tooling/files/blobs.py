"""A content-addressed store for the previous contents of changed files, and for images."""

import hashlib
from pathlib import Path

from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import NotRegularFile, read_regular


def content_hash(data: bytes) -> str:
    """Return the hash that identifies content in a store."""
    return hashlib.sha256(data).hexdigest()


class BlobStore:
    """A private folder of blobs, each in a file named by its hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes, *, is_synced: bool = True) -> str:
        """Store content, durably if `is_synced`, and return its hash."""
        name = content_hash(data)
        path = self._folder / name
        if path.exists() and self.read(name) is not None:
            return name
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, data, is_synced=is_synced)
        return name

    def read(self, name: str) -> bytes | None:
        """Return the content with this hash, or None if it is missing or damaged."""
        try:
            data = read_regular(self._folder / name)
        except (FileNotFoundError, NotRegularFile):
            return None
        return data if content_hash(data) == name else None
