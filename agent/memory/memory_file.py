"""MEMORY.md: one file per user, changed under a lock and replaced atomically.

Users may edit it by hand: lines that are not entries stay in place, byte for byte.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agent.memory.entries import Tag, format_entry, is_known, non_blank, parse_lines
from tooling.files.atomic_write import TEMP_SUFFIX, write_atomic
from tooling.files.open_regular import open_fd, read_regular

MEMORY_FILE = "MEMORY.md"
MAX_BACKUPS = 10
# Far more than fits into any request; a larger file was not written by a memory.
MAX_BYTES = 4_000_000
_BACKUPS = "memory-backups"
_LOCK = ".memory.lock"


class MemoryFile:
    """The memory in a data folder; failing to read or write it raises OSError."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self.path = data_dir / MEMORY_FILE

    @property
    def backups(self) -> list[Path]:
        """The backups, oldest first."""
        return sorted((self._folder / _BACKUPS).glob("*.md"))

    def size(self) -> int:
        """Return the size in bytes, 0 if it cannot be determined."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def read(self) -> str:
        """Return the text; invalid UTF-8 survives a round trip."""
        try:
            return read_regular(self.path, limit=MAX_BYTES).decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return ""

    def append(self, text: str, *, tag: Tag | None = None, now: datetime | None = None) -> str | None:
        """Add an entry and return its line, or None if it is already remembered."""
        line = format_entry(text, tag=tag, now=now or datetime.now().astimezone())
        (entry,) = parse_lines(line)

        def add(before: str) -> str:
            if is_known(parse_lines(before), entry):
                return before
            gap = "" if not before or before.endswith("\n") else "\n"
            return f"{before}{gap}{line}\n"

        return line if self.change(add) else None

    def change(self, edit: Callable[[str], str], *, has_backup: bool = False) -> bool:
        """Replace the text with `edit(text)` under the lock; return False if it is unchanged."""
        with self._locked():
            before = self.read()
            after = edit(before)
            if after == before:
                return False
            if has_backup and before:
                self._back_up(before)
            self._write(after)
            return True

    def forget(self, text: str) -> list[str]:
        """Remove the lines containing a text, ignoring case, here and in all backups; return them."""
        with self._locked():
            before = self.read()
            removed = find_lines(before, text)
            if removed:
                self._write(_remove_lines(before, text))
                for copy in self.backups:
                    write_atomic(
                        copy, _encode(_remove_lines(read_regular(copy).decode("utf-8", "surrogateescape"), text))
                    )
        return removed

    def clear(self, *, has_backup: bool) -> int:
        """Clear the memory and return the number of lines; without a backup, delete older backups too."""
        with self._locked():
            before = self.read()
            if has_backup and before:
                self._back_up(before)
            if not has_backup:
                for copy in self.backups:
                    copy.unlink()
            if before:
                self._write("")
        return sum(1 for _ in non_blank(parse_lines(before)))

    def _back_up(self, text: str) -> None:
        folder = self._folder / _BACKUPS
        folder.mkdir(mode=0o700, exist_ok=True)
        write_atomic(folder / f"{datetime.now():%Y%m%d-%H%M%S-%f}.md", _encode(text))
        for old in self.backups[:-MAX_BACKUPS]:
            old.unlink()

    def _write(self, text: str) -> None:
        # Replace the target of a symbolic link, not the link.
        target = self.path.resolve()
        for leftover in target.parent.glob(f".{target.name}.*{TEMP_SUFFIX}"):
            # Left by a killed process: we hold the lock, so no other writer is active.
            leftover.unlink()
        write_atomic(target, _encode(text))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = open_fd(self._folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def find_lines(memory: str, text: str) -> list[str]:
    """Return the lines containing a text, ignoring case."""
    wanted = text.casefold()
    return [line.raw for line in non_blank(parse_lines(memory)) if wanted in line.text.casefold()]


def _remove_lines(memory: str, text: str) -> str:
    removed = set(find_lines(memory, text))
    return "\n".join(raw for raw in memory.split("\n") if raw not in removed)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
