"""What a session is called: the name a person gave it, else what was asked first. Its id never changes."""

import os

from agent.sessions.fold import SessionRecord
from agent.sessions.store import SessionFolder
from agent.vocabulary.errors import InputError

MOST_CHARS = 200


def title_of(folder: SessionFolder, record: SessionRecord) -> str:
    """Return the session's title as one line."""
    given = given_title(folder)
    return given or " ".join((record.request or next((run.user for run in record.runs), "")).split())


def given_title(folder: SessionFolder) -> str:
    """Return the name a person gave, empty when there is none."""
    try:
        return " ".join(folder.title.read_text("utf-8", "replace").split())
    except OSError:
        return ""


def rename(folder: SessionFolder, title: str) -> str:
    """Give a session a name, or with an empty one take it back; return what it is now called by hand."""
    words = " ".join(title.split())
    if len(words) > MOST_CHARS:
        raise InputError(f"a title has at most {MOST_CHARS} characters, this one has {len(words)}")
    if not words:
        folder.title.unlink(missing_ok=True)
        return ""
    temporary = folder.title.with_name(f"title.{os.getpid()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(words + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder.title)
    return words
