"""Session folders under the data directory: making, finding and holding them."""

import contextlib
import errno
import fcntl
import os
import re
import secrets
from datetime import datetime
from pathlib import Path

from agent.vocabulary.errors import InputError, SessionBusy
from tooling.contract.fast_dataclass import dataclass

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REQUEST_CHARS = 200
_HOLDER_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFolder:
    """Where the parts of one session live."""

    id: str
    root: Path

    @property
    def events(self) -> Path:
        """Return the path of the event log."""
        return self.root / "events.jsonl"

    @property
    def summary(self) -> Path:
        """Return the path of SESSION.json."""
        return self.root / "SESSION.json"

    @property
    def title(self) -> Path:
        """Return the path of the name a person gave it."""
        return self.root / "title"

    @property
    def lock(self) -> Path:
        """Return the file that whoever runs in it holds."""
        return self.root / "lock"

    @property
    def outputs(self) -> Path:
        """Return the folder of full command outputs."""
        return self.root / "outputs"

    @property
    def blobs(self) -> Path:
        """Return the folder of what files held before they were changed."""
        return self.root / "blobs"

    @property
    def steps(self) -> Path:
        """Return the folder of finished steps' results."""
        return self.root / "steps"

    @property
    def workspace(self) -> Path:
        """Return the session's own workspace."""
        return self.root / "workspace"


class SessionStore:
    """Makes session folders that only their owner can read."""

    def __init__(self, data_dir: Path) -> None:
        self._sessions = data_dir / "sessions"

    @property
    def root(self) -> Path:
        """Return the folder that holds all sessions; it may not be there yet."""
        return self._sessions

    def ids(self, start: str = "") -> list[str]:
        """Return the ids of all sessions, or of those whose ids begin so."""
        try:
            with os.scandir(self._sessions) as entries:
                found = [e.name for e in entries if e.name.startswith(start) and _ID.fullmatch(e.name) and e.is_dir()]
        except FileNotFoundError:
            return []
        return sorted(found)

    def all(self) -> list[SessionFolder]:
        """Return every session there is, by their ids."""
        return [self.folder_for(name) for name in self.ids()]

    def find(self, name: str) -> SessionFolder:
        """Return a session by its id or the beginning of it, without making one; no other one is looked into."""
        names = [name] if (self._sessions / name).is_dir() else self.ids(name)
        if not _ID.fullmatch(name) or not names:
            raise InputError(f"there is no session {name!r}", "`agent sessions list` shows them")
        if len(names) > 1:
            raise InputError(f"{name!r} is the beginning of {len(names)} sessions", "give more of the id")
        return self.folder_for(names[0])

    def folder_for(self, session_id: str) -> SessionFolder:
        """Return where a session of this id is or would be; a name that is a path trick is refused."""
        if not _ID.fullmatch(session_id):
            raise InputError(
                f"{session_id!r} is not a session id", "use letters, digits, '.', '_' and '-', at most 64 of them"
            )
        return SessionFolder(id=session_id, root=self._sessions / session_id)

    def open(self, session_id: str) -> SessionFolder:
        """Return the folder of a session, made when it is new."""
        folder = self.folder_for(session_id)
        # Parents that mkdir makes on the way get the ordinary mode, so each is made by name.
        for path in (self._sessions, folder.root, folder.outputs, folder.workspace):
            path.mkdir(exist_ok=True, mode=0o700)
        return folder


def new_session_id(now: datetime) -> str:
    """Return an id that sorts by time and does not collide."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class SessionLock:
    """Held while a run works in a session; released by the kernel when its process dies."""

    def __init__(self, folder: SessionFolder) -> None:
        self._fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _describe_holder(os.pread(self._fd, _HOLDER_BYTES, 0))
            os.close(self._fd)
            message = f"session {folder.id} is busy: {holder}"
            raise SessionBusy(message, "wait for it to end, or use another --session") from error
        if not folder.lock.exists() or not os.path.samestat(os.fstat(self._fd), folder.lock.stat()):
            os.close(self._fd)
            raise FileNotFoundError(errno.ENOENT, "the session was removed meanwhile", str(folder.root))
        # Who holds it is good to know; a full disk must not keep anybody from tidying up.
        with contextlib.suppress(OSError):
            self.write_holder("")

    def write_holder(self, request: str) -> None:
        """Write down who holds the session and what was asked, for others to read."""
        line = " ".join(request.split())[:_REQUEST_CHARS]
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n{line}\n".encode("utf-8", "backslashreplace"), 0)

    def release(self) -> None:
        """Let the next run in."""
        os.close(self._fd)


def _describe_holder(written: bytes) -> str:
    pid, _, request = written.decode(errors="replace").partition("\n")
    who = f"process {pid.strip() or 'unknown'}"
    return f"{who} runs {request.strip()!r} in it" if request.strip() else f"{who} runs in it"
