"""AGENTS.md and CLAUDE.md: what a project tells the agents that work in it. They inform, and they allow nothing."""

import os
import stat
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.output import sanitize_output

NAMES = ("AGENTS.md", "CLAUDE.md")
NOTES_CHARS = 16_000
# What one file may hold before only its beginning is looked at.
_MAX_BYTES = 256_000
# Without O_NONBLOCK the open of a FIFO waits for a writer, for ever.
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNote:
    """One file of notes: where it stands, as seen from the folder, and what it says."""

    path: str
    text: str


def read_notes(folder: Path, limit: int = NOTES_CHARS) -> list[ProjectNote]:
    """Return the notes of a folder and those above it up to the root of its repository, the nearest last.

    When they are too long together, the nearest have their room first and the rest is cut, which they say.
    """
    top = _repo_root(folder)
    found: list[ProjectNote] = []
    seen: set[str] = set()
    room = limit
    for place in (folder, *folder.parents):
        notes = [(name, text) for name in NAMES if (text := _read_text(place / name, top).strip())]
        for name, text in reversed(notes):
            if text in seen or room <= 0:
                continue
            seen.add(text)
            found.append(ProjectNote(path=os.path.relpath(place / name, folder), text=_truncate(text, room)))
            room -= len(text)
        if place == top:
            break
    return found[::-1]


def _repo_root(folder: Path) -> Path:
    """Return the top of the repository around a folder, or the folder when there is none of the same owner."""
    owner = folder.stat().st_uid
    for place in (folder, *folder.parents):
        # A folder above that is somebody else's could hold anything, a `.git` included.
        if place.stat().st_uid != owner:
            break
        if (place / ".git").exists():
            return place
    return folder


def _read_text(path: Path, top: Path) -> str:
    """Return what a file says; one that is missing, no text, or a link that leads out of the project says nothing."""
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
    return "" if b"\0" in data else sanitize_output(data.decode("utf-8", "replace"))


def _truncate(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[:room].rstrip()}\n[… {len(text) - room} characters left out; read the file for the rest]"
