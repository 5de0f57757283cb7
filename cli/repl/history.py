"""What was typed before, kept for this user alone, and never with a secret in it."""

from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from tooling.files.atomic_write import write_whole

# A pasted book need not be found again by pressing an arrow.
_LONGEST_CHARS = 10_000
_MOST_BYTES = 1_000_000
_ENTRY = b"\n# "


class CarefulHistory(FileHistory):
    """Leaves out of the file what holds a secret; it can be found again until the prompt is closed."""

    def __init__(self, path: Path, redact: Callable[[str], str]) -> None:
        super().__init__(str(path))
        self._redact = redact

    def load_history_strings(self) -> Iterable[str]:
        """Return what is kept, newest first; a file that cannot be read holds nothing."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Keep a text, unless it should not lie on a disk."""
        if len(string) > _LONGEST_CHARS or self._redact(string) != string:
            return
        try:
            super().store_string(string.encode("utf-8", "replace").decode())
        except OSError:
            # A full disk is told of by what matters more.
            return


def open_history(folder: Path, redact: Callable[[str], str]) -> History:
    """Return the history in a folder; one that cannot be kept lasts as long as the prompt."""
    path = folder / "history"
    try:
        path.touch(mode=0o600)
        if path.stat().st_size > _MOST_BYTES:
            _shorten(path)
    except OSError:
        return InMemoryHistory()
    return CarefulHistory(path, redact)


def _shorten(path: Path) -> None:
    """Keep the newer half."""
    newer = path.read_bytes()[-_MOST_BYTES // 2 :]
    write_whole(path, newer[max(0, newer.find(_ENTRY)) :])
