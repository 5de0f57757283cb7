"""MEMORY.md: one file for one user, changed by one process at a time, whole at every moment.

A person may edit it by hand: lines that are not ours stay where they are, byte for byte.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agent.memory.entries import Tag, format_entry, is_known, non_blank, parse_lines
from tooling.files.atomic_write import TEMP_SUFFIX, write_atomic

MEMORY_FILE = "MEMORY.md"
MAX_BACKUPS = 10
_BACKUPS = "memory-backups"
_LOCK = ".memory.lock"


class MemoryFile:
    """The memory in a data folder; what cannot be read or written is an OSError."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self.path = data_dir / MEMORY_FILE

    @property
    def backups(self) -> list[Path]:
        """Return the kept copies, the oldest first."""
        return sorted((self._folder / _BACKUPS).glob("*.md"))

    def size(self) -> int:
        """Return how many bytes are remembered; of what cannot be looked at, none."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def read(self) -> str:
        """Return the whole text; bytes that are no UTF-8 come back as they were when it is written."""
        try:
            return self.path.read_bytes().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return ""

    def append(self, text: str, *, tag: Tag | None = None, now: datetime | None = None) -> str | None:
        """Add an entry and return its line, or None when the same is remembered already."""
        line = format_entry(text, tag=tag, now=now or datetime.now().astimezone())
        (entry,) = parse_lines(line)

        def added(before: str) -> str:
            if is_known(parse_lines(before), entry):
                return before
            gap = "" if not before or before.endswith("\n") else "\n"
            return f"{before}{gap}{line}\n"

        return line if self.change(added) else None

    def change(self, edit: Callable[[str], str], *, has_backup: bool = False) -> bool:
        """Replace the text by what `edit` makes of it while nobody else does; False when that is the same."""
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
        """Take out the lines that hold a text, whatever its case, here and in every copy; return them."""
        with self._locked():
            before = self.read()
            gone = find_lines(before, text)
            if gone:
                self._write(_remove_lines(before, text))
                for copy in self.backups:
                    write_atomic(
                        copy, _encode(_remove_lines(copy.read_bytes().decode("utf-8", "surrogateescape"), text))
                    )
        return gone

    def clear(self, *, has_backup: bool) -> int:
        """Forget everything and return how many lines that were; without a backup older copies go as well."""
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
        # Whoever keeps the real file elsewhere and links to it keeps the link.
        target = self.path.resolve()
        for left in target.parent.glob(f".{target.name}.*{TEMP_SUFFIX}"):
            # Only a writer that was killed leaves one: we hold the lock.
            left.unlink()
        write_atomic(target, _encode(text))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fd = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def find_lines(memory: str, text: str) -> list[str]:
    """Return the lines that hold a text, as they stand there."""
    wanted = text.casefold()
    return [line.raw for line in non_blank(parse_lines(memory)) if wanted in line.text.casefold()]


def _remove_lines(memory: str, text: str) -> str:
    gone = set(find_lines(memory, text))
    return "\n".join(raw for raw in memory.split("\n") if raw not in gone)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
