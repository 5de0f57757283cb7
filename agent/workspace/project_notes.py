"""Project notes (AGENTS.md, CLAUDE.md): conventions for agents that work in a project; they grant no permissions."""

import os
import stat
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.output import sanitize_output
from tooling.web.html.hidden_unicode import strip_invisible

NAMES = ("AGENTS.md", "CLAUDE.md")
NOTES_CHARS = 16_000
# Maximum number of bytes read from a file.
_MAX_BYTES = 256_000
# Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNote:
    """One file of notes, with its path relative to the folder."""

    path: str
    text: str


def read_notes(folder: Path, limit: int = NOTES_CHARS) -> list[ProjectNote]:
    """Return the notes of a folder and its parents up to the root of its repository, the nearest last.

    If they exceed the limit, the nearest take precedence and the others are truncated with a remark.
    """
    top = _repo_root(folder)
    found: list[ProjectNote] = []
    seen: set[str] = set()
    remaining = limit
    for parent in (folder, *folder.parents):
        notes = [(name, text) for name in NAMES if (text := _read_text(parent / name, top).strip())]
        for name, text in reversed(notes):
            if text in seen or remaining <= 0:
                continue
            seen.add(text)
            found.append(ProjectNote(path=os.path.relpath(parent / name, folder), text=_truncate(text, remaining)))
            remaining -= len(text)
        if parent == top:
            break
    return found[::-1]


def _repo_root(folder: Path) -> Path:
    """Return the root of the repository that contains a folder, or the folder if the same owner has none."""
    owner = folder.stat().st_uid
    for parent in (folder, *folder.parents):
        # A parent with another owner could contain anything, including a planted `.git`.
        if parent.stat().st_uid != owner:
            break
        if (parent / ".git").exists():
            return parent
    return folder


def _read_text(path: Path, top: Path) -> str:
    """Return a file's text; empty if it is missing, not text, or a link that leads out of the project."""
    try:
        below = path.resolve(strict=True).relative_to(top)
        root = os.open(top, DIR_FLAGS)
        try:
            fd = open_beneath(root, str(below), _OPEN_FLAGS)
        finally:
            os.close(root)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return ""
            data = file.read(_MAX_BYTES)
    except (OSError, ValueError, RuntimeError):
        return ""
    # Nothing that the user would not see when reading the file.
    return "" if b"\0" in data else strip_invisible(sanitize_output(data.decode("utf-8", "replace")))[0]


def _truncate(text: str, remaining: int) -> str:
    if len(text) <= remaining:
        return text
    return f"{text[:remaining].rstrip()}\n[… {len(text) - remaining} characters left out; read the file for the rest]"
