"""Session titles: the one the user chose, else the first request. The id never changes."""

from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import SessionHead
from agent.vocabulary.errors import InputError
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import read_regular

MAX_CHARS = 200
MAX_BYTES = 4 * MAX_CHARS + 1


def session_title(folder: SessionFolder, head: SessionHead) -> str:
    """Return the session's title as one line."""
    return custom_title(folder) or " ".join(head.request.split())


def custom_title(folder: SessionFolder) -> str:
    """Return the title that the user chose, or an empty string."""
    try:
        return " ".join(read_regular(folder.title, limit=MAX_BYTES).decode("utf-8", "replace").split())
    except OSError:
        return ""


def rename(folder: SessionFolder, title: str) -> str:
    """Set the title of a session, or clear it if `title` is blank; return the title that was set."""
    words = " ".join(title.split())
    if len(words) > MAX_CHARS:
        raise InputError(f"a title can have at most {MAX_CHARS} characters; this one has {len(words)}")
    if words:
        write_atomic(folder.title, f"{words}\n".encode("utf-8", "backslashreplace"))
    else:
        folder.title.unlink(missing_ok=True)
    return words
