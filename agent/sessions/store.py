"""Session folders under the data directory: create, find and lock them."""

import contextlib
import errno
import fcntl
import os
from datetime import datetime
from pathlib import Path

from agent.vocabulary.errors import InputError, SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import open_fd

_ID = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REQUEST_CHARS = 200
_HOLDER_BYTES = 4096
# The end of the ids of sessions and runs.
RANDOM_CHARS = 6
LONGER_PREFIX = "use a longer prefix of the id"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFolder:
    """The paths of one session."""

    id: str
    root: Path

    @property
    def events(self) -> Path:
        return self.root / "events.jsonl"

    @property
    def summary(self) -> Path:
        return self.root / "SESSION.json"

    @property
    def title(self) -> Path:
        """The file with the title that the user chose."""
        return self.root / "title"

    @property
    def lock(self) -> Path:
        """The file that a running process keeps locked."""
        return self.root / "lock"

    @property
    def outputs(self) -> Path:
        """The folder of full command outputs."""
        return self.root / "outputs"

    @property
    def blobs(self) -> Path:
        """The folder of file contents from before a change, for undo, and of images."""
        return self.root / "blobs"

    @property
    def checkpoint(self) -> Path:
        """The folder with the state of the workspace before the running command, for undo."""
        return self.root / "checkpoint"

    @property
    def steps(self) -> Path:
        """The folder of cached step results."""
        return self.root / "steps"

    @property
    def workspace(self) -> Path:
        """The working folder of runs that get an empty one."""
        return self.root / "workspace"

    def folder_of_user(self, cwd: str) -> Path | None:
        """Return the working folder of a run; None if it is not known or the session's own workspace."""
        return Path(cwd) if cwd and Path(cwd).resolve() != self.workspace.resolve() else None


def is_short_for(short: str, full: str) -> bool:
    """Whether an id starts with `short`, or ends with it as its random part, as lists show ids."""
    return full.startswith(short) or (len(short) == RANDOM_CHARS and full.endswith(f"-{short}"))


class SessionStore:
    """Creates and finds session folders, which only their owner can read."""

    def __init__(self, data_dir: Path) -> None:
        self._sessions = data_dir / "sessions"

    @property
    def root(self) -> Path:
        """The folder of all sessions; it may not exist yet."""
        return self._sessions

    def ids(self, prefix: str = "") -> list[str]:
        """Return the ids of all sessions, or of those that `prefix` is short for, sorted."""
        try:
            with os.scandir(self._sessions) as entries:
                ids = [e.name for e in entries if is_short_for(prefix, e.name) and _ID.fullmatch(e.name) and e.is_dir()]
        except FileNotFoundError:
            return []
        return sorted(ids)

    def all(self) -> list[SessionFolder]:
        return [self.folder_for(session_id) for session_id in self.ids()]

    def find(self, prefix: str) -> SessionFolder:
        """Return the session with this id or unique id prefix. Raises InputError if there is none."""
        ids = [prefix] if (self._sessions / prefix).is_dir() else self.ids(prefix)
        if not _ID.fullmatch(prefix) or not ids:
            raise InputError(f"there is no session {prefix!r}", "`agent sessions list` shows them")
        if len(ids) > 1:
            raise InputError(f"{prefix!r} matches {len(ids)} sessions", LONGER_PREFIX)
        return self.folder_for(ids[0])

    def folder_for(self, session_id: str) -> SessionFolder:
        """Return the folder of a session, existing or not. Raises InputError for an id that is not a plain name."""
        if not _ID.fullmatch(session_id):
            raise InputError(
                f"{session_id!r} is not a session id", "use letters, digits, '.', '_' and '-', at most 64 of them"
            )
        return SessionFolder(id=session_id, root=self._sessions / session_id)

    def open(self, session_id: str) -> SessionFolder:
        """Return the folder of a session, creating it if needed."""
        folder = self.folder_for(session_id)
        # mkdir(parents=True) would create the parents with the default mode, so each is created separately.
        for path in (self._sessions, folder.root, folder.outputs, folder.workspace):
            path.mkdir(exist_ok=True, mode=0o700)
        return folder


def new_session_id(now: datetime) -> str:
    """Return a unique id that sorts by time."""
    return f"{now:%Y%m%d-%H%M%S}-{os.urandom(RANDOM_CHARS // 2).hex()}"


class SessionLock:
    """Held while a process works in a session; the kernel releases it when that process dies."""

    def __init__(self, folder: SessionFolder) -> None:
        self._fd = open_fd(folder.lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid, _, request = os.pread(self._fd, _HOLDER_BYTES, 0).decode(errors="replace").partition("\n")
            os.close(self._fd)
            message = busy_message(folder.id, pid.strip() or "unknown", request.strip())
            raise SessionBusy(message, "wait for it to finish, or use another --session") from error
        if not folder.lock.exists() or not os.path.samestat(os.fstat(self._fd), folder.lock.stat()):
            os.close(self._fd)
            raise FileNotFoundError(errno.ENOENT, "the session was removed meanwhile", str(folder.root))
        # The holder's id is only informative; a full disk must not prevent removing sessions.
        with contextlib.suppress(OSError):
            self.write_holder("")

    def write_holder(self, request: str) -> None:
        """Write this process id and the request into the lock file, for others to read."""
        line = " ".join(request.split())[:_REQUEST_CHARS]
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n{line}\n".encode("utf-8", "backslashreplace"), 0)

    def release(self) -> None:
        os.close(self._fd)


def busy_message(session_id: str, pid: str, request: str) -> str:
    doing = f"is running {request!r}" if request else "is using it"
    return f"session {session_id} is busy: process {pid} {doing}"
