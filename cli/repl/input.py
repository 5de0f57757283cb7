"""Processing of typed input: `@path` mentions, the history file, large pastes."""

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import write_atomic
from tooling.files.sensitive_files import is_sensitive_file
from tooling.images.header import is_image_file

_MENTION = re.compile(r"""(?:^|(?<=\s))@(?:"([^"\n]+)"|'([^'\n]+)'|(\S+))""")
_PUNCTUATION = ".,;:!?)"
SECRETS = "it usually contains secrets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Files to attach, and warnings about files that are not attached."""

    files: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def find_mentions(request: str, folder: Path) -> Mentions:
    """Return the files a request mentions; sensitive ones are refused, since parts of a request may be pasted."""
    files: list[Path] = []
    refused: list[str] = []
    names = ("".join(groups) for groups in _MENTION.findall(request))
    for name in dict.fromkeys(names):
        path = folder / name
        if not _is_file(path) and not _is_file(path := folder / name.rstrip(_PUNCTUATION)):
            continue
        if why := _refusal_reason(path, folder):
            refused.append(f"@{name} not attached: {why}; use !cat to include it anyway")
        else:
            files.append(path)
    return Mentions(files=tuple(files), refused=tuple(refused))


def image_mentions(pasted: str) -> str | None:
    """Return the mentions for a paste that is nothing but paths of images, as a dragged file is; else None."""
    try:
        words = shlex.split(pasted)
    except ValueError:
        return None
    paths = [_pasted_path(word) for word in words]
    if not paths or not all(path and is_image_file(path) for path in paths):
        return None
    return "".join(f"{mention(str(path))} " for path in paths)


def mention(path: str) -> str:
    """Return the mention of a path, quoted if it contains a space."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def _pasted_path(word: str) -> Path | None:
    text = unquote(urlsplit(word).path) if word.startswith("file://") else word
    if "\0" in text or '"' in text or not text.startswith(("/", "~/")):
        return None
    return Path(text).expanduser()


def _refusal_reason(path: Path, folder: Path) -> str:
    real, here = path.resolve(), folder.resolve()
    if is_sensitive_file(path) or is_sensitive_file(real):
        return SECRETS
    is_named_inside = ".." not in path.parts and path.is_relative_to(folder)
    if is_named_inside and not real.is_relative_to(here):
        return f"it is a link to {real}, outside this folder"
    return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # Too long for a file name, or in a folder we may not read: treat it as plain text.
        return False


# Pasted books are not worth recalling with the arrow keys.
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
            # A full disk is reported where it matters more.
            return


def open_history(folder: Path, redact: Callable[[str], str]) -> History:
    """Open the history file in a folder; fall back to memory if it cannot be written."""
    path = folder / "history"
    try:
        path.touch(mode=0o600)
        if path.stat().st_size > _MAX_HISTORY_BYTES:
            _truncate_history(path)
    except OSError:
        return InMemoryHistory()
    return FilteredHistory(path, redact)


def _truncate_history(path: Path) -> None:
    """Drop the older half of the entries."""
    newer = path.read_bytes()[-_MAX_HISTORY_BYTES // 2 :]
    write_atomic(path, newer[max(0, newer.find(_ENTRY)) :])


_MAX_INLINE_CHARS = 2000
_MAX_INLINE_LINES = 30


class LargePastes:
    """Large pastes since the last request, each represented by a placeholder in the prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

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
