"""Digests of the files that commands run: an approval applies only to the content at that time."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tooling.approvals.rule_text import DIGEST_PREFIX
from tooling.contract.action import Script
from tooling.files.open_regular import open_regular

# 128 bits: no other script with the same digest can be constructed.
_DIGEST_LENGTH = 32
_MAX_FILE_BYTES = 8_000_000
_CHUNK = 1_000_000


def script_digests(scripts: Iterable[Script]) -> Mapping[str, str]:
    """Return a digest of the files that each command runs, by command; commands that run none are omitted."""
    hashes: dict[str, hashlib._Hash] = {}
    for script in scripts:
        content = _content_hash(script.path)
        if content:
            found = hashes.setdefault(script.command, hashlib.sha256())
            found.update(f"{script.path.name}\0{content}\n".encode())
    return {command: f"{DIGEST_PREFIX}{found.hexdigest()[:_DIGEST_LENGTH]}" for command, found in hashes.items()}


def _content_hash(path: Path) -> str:
    """Return the hash of a regular file, or nothing; the end of a very long one is represented by size and time."""
    try:
        if not path.is_file():
            return ""
        found = hashlib.sha256()
        with open_regular(path) as file:
            left = _MAX_FILE_BYTES
            while left > 0 and (chunk := file.read(min(_CHUNK, left))):
                found.update(chunk)
                left -= len(chunk)
            if left <= 0:
                status = path.stat()
                found.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    except (OSError, ValueError):
        return "unreadable"
    return found.hexdigest()
