"""Processing of typed input: the history file, and pastes."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import open_fd, open_regular

# Very long pastes are not worth recalling with the arrow keys.
_MAX_ENTRY_CHARS = 10_000
_MAX_HISTORY_BYTES = 1_000_000
_ENTRY = b"\n# "


class FilteredHistory(FileHistory):
    """Keeps entries that contain secrets in memory only."""

    def __init__(self, path: Path, redact: Callable[[str], str]) -> None:
        super().__init__(str(path))
        self._redact = redact

    def load_history_strings(self) -> Iterable[str]:
        """Return the saved entries, newest first; none if the file cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Save the entry unless it is too long or contains a secret."""
        if len(string) > _MAX_ENTRY_CHARS or self._redact(string) != string:
            return
        try:
            super().store_string(string.encode("utf-8", "replace").decode())
        except OSError:
            # A full disk is reported by more important writes.
            return


def open_history(folder: Path, redact: Callable[[str], str]) -> History:
    """Open the history file in a folder; fall back to memory if it cannot be written."""
    path = folder / "history"
    try:
        os.close(open_fd(path, os.O_RDWR | os.O_CREAT))
        if path.stat().st_size > _MAX_HISTORY_BYTES:
            _truncate_history(path)
    except OSError:
        return InMemoryHistory()
    return FilteredHistory(path, redact)


def _truncate_history(path: Path) -> None:
    """Drop the older half of the entries."""
    with open_regular(path) as file:
        file.seek(-_MAX_HISTORY_BYTES // 2, os.SEEK_END)
        newer = file.read()
    write_atomic(path, newer[max(0, newer.find(_ENTRY)) :])


class TypedAhead:
    """Lines typed together with a request, before it began: they are handled when it has ended, as in a shell.

    Handled at once, a `/clear` typed after a request would come before it.
    """

    def __init__(self, is_starting: Callable[[], bool], accept: Callable[[str], None]) -> None:
        self._is_starting = is_starting
        self._accept = accept
        self._lines: list[str] = []

    def holds(self, line: str, *, is_special: bool) -> bool:
        """Keep a line that must wait: a command or note after a request, and everything after these."""
        if not self._is_starting() or not (is_special or self._lines):
            return False
        self._lines.append(line)
        return True

    def release(self) -> None:
        """Handle the lines in their order; a request among them makes the others wait again."""
        lines, self._lines = self._lines, []
        for line in lines:
            self._accept(line)


_MAX_INLINE_CHARS = 2000
_MAX_INLINE_LINES = 30
_BEGINNING_CHARS = 20


class Pastes:
    """Pastes since the last request; a large one is represented by a placeholder in the prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._beginning = ""

    def mark_beginning(self, text: str) -> None:
        """Record that the prompt begins with a text that the user did not type."""
        self._beginning = text[:_BEGINNING_CHARS]

    def begins(self, typed: str) -> bool:
        """Whether a text in the prompt begins with a paste."""
        return bool(self._beginning) and typed.lstrip().startswith(self._beginning)

    def add(self, pasted: str) -> str:
        """Return the text to insert: the paste itself, or a placeholder if it is large."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if len(text) <= _MAX_INLINE_CHARS and lines <= _MAX_INLINE_LINES:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        placeholder = f"[paste {len(self._texts) + 1}: {size}]"
        self._texts[placeholder] = text
        return placeholder

    def expand(self, typed: str) -> str:
        """Replace all placeholders with the pasted texts."""
        for placeholder, text in self._texts.items():
            typed = typed.replace(placeholder, text)
        return typed

    def clear(self) -> None:
        """Forget all pastes."""
        self._texts.clear()
        self._beginning = ""
