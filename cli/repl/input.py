"""`@path` in a request: which files come along, and which are named by somebody who should not have them."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import write_atomic
from tooling.safety.paths.sensitive_files import is_sensitive_file

_MENTION = re.compile(r"(?:^|(?<=\s))@(\S+)")
_SECRETS = "it usually holds secrets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """What was found: files to take along, and why others stay."""

    files: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def find_mentions(request: str, folder: Path) -> Mentions:
    """Return the files that a request names; part of it may be pasted, so not everything it names comes along."""
    files: list[Path] = []
    refused: list[str] = []
    for name in dict.fromkeys(_MENTION.findall(request)):
        path = folder / name
        if not _is_file(path):
            continue
        if why := _refusal_reason(path, folder):
            refused.append(f"@{name} stays here: {why}; !cat takes along what you want to send")
        else:
            files.append(path)
    return Mentions(files=tuple(files), refused=tuple(refused))


def _refusal_reason(path: Path, folder: Path) -> str:
    real, here = path.resolve(), folder.resolve()
    if is_sensitive_file(path) or is_sensitive_file(real):
        return _SECRETS
    is_named_inside = ".." not in path.parts and path.is_relative_to(folder)
    if is_named_inside and not real.is_relative_to(here):
        return f"it is a link to {real}, outside of this folder"
    return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # Too long for a name, or behind a folder that is closed to us: words, then.
        return False


# A pasted book need not be found again by pressing an arrow.
_MAX_ENTRY_CHARS = 10_000
_MAX_HISTORY_BYTES = 1_000_000
_ENTRY = b"\n# "


class FilteredHistory(FileHistory):
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
        if len(string) > _MAX_ENTRY_CHARS or self._redact(string) != string:
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
        if path.stat().st_size > _MAX_HISTORY_BYTES:
            _truncate_history(path)
    except OSError:
        return InMemoryHistory()
    return FilteredHistory(path, redact)


def _truncate_history(path: Path) -> None:
    """Keep the newer half."""
    newer = path.read_bytes()[-_MAX_HISTORY_BYTES // 2 :]
    write_atomic(path, newer[max(0, newer.find(_ENTRY)) :])


_MAX_INLINE_CHARS = 2000
_MAX_INLINE_LINES = 30


class LargePastes:
    """What was pasted since the last request."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, pasted: str) -> str:
        """Return what stands in the prompt: the text itself, or a few words for one that is long."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if len(text) <= _MAX_INLINE_CHARS and lines <= _MAX_INLINE_LINES:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        sign = f"[paste {len(self._texts) + 1}: {size}]"
        self._texts[sign] = text
        return sign

    def expand(self, typed: str) -> str:
        """Return what was typed with the pasted texts in their places."""
        for sign, text in self._texts.items():
            typed = typed.replace(sign, text)
        return typed

    def clear(self) -> None:
        """Let go of what was sent or dropped."""
        self._texts.clear()
