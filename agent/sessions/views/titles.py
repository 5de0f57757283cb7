"""What a session is called: the name a person gave it, else what was asked first. Its id never changes."""

from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import SessionHead
from agent.vocabulary.errors import InputError
from tooling.files.atomic_write import write_atomic

MAX_CHARS = 200


def session_title(folder: SessionFolder, head: SessionHead) -> str:
    """Return the session's title as one line."""
    return custom_title(folder) or " ".join(head.request.split())


def custom_title(folder: SessionFolder) -> str:
    """Return the name a person gave, empty when there is none."""
    try:
        return " ".join(folder.title.read_text("utf-8", "replace").split())
    except OSError:
        return ""


def rename(folder: SessionFolder, title: str) -> str:
    """Give a session a name, or with an empty one take it back; return the name it has by hand now."""
    words = " ".join(title.split())
    if len(words) > MAX_CHARS:
        raise InputError(f"a title has at most {MAX_CHARS} characters, this one has {len(words)}")
    if words:
        write_atomic(folder.title, f"{words}\n".encode("utf-8", "backslashreplace"))
    else:
        folder.title.unlink(missing_ok=True)
    return words
