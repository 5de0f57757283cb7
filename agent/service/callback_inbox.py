"""The callbacks that executors have sent, by session: each is kept once, however often it is sent."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.hooks.callback_client import TERMINAL
from agent.sessions.store import SessionStore
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, decode, encode
from tooling.files.open_regular import open_fd

# More than a run sends; what ends a run is always kept.
MAX_KEPT = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """One event that an executor reported; `key` is the same if it is sent again."""

    key: str
    session_id: str
    event: str
    data: JsonObject
    received_at: str
    trace_id: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether the event ends a run."""
        return self.event in TERMINAL


class CallbackInbox:
    """A file of callbacks for each session, which several processes may read and write."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "queue" / "callbacks"
        # It knows which names are ids of sessions, and refuses all others.
        self._sessions = SessionStore(data)

    def receive(self, callback: Callback) -> bool:
        """Keep a callback; False if it is there already, or there are too many. Raises InputError for a wrong id."""
        path = self._path(callback.session_id)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            known = self.read(callback.session_id)
            if any(one.key == callback.key for one in known) or (len(known) >= MAX_KEPT and not callback.is_terminal):
                return False
            line = json.dumps(encode(callback), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            fd = open_fd(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(fd, line)
                os.fsync(fd)
            finally:
                os.close(fd)
        return True

    def read(self, session_id: str) -> list[Callback]:
        """Return the callbacks of a session in the order in which they came; a line cut by a crash is skipped."""
        try:
            lines = self._path(session_id).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [found for found in map(_parse, lines) if found]

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{self._sessions.folder_for(session_id).id}.jsonl"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = open_fd(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _parse(line: bytes) -> Callback | None:
    try:
        return decode(Callback, json.loads(line), extra="ignore")
    except (ValueError, RecursionError):
        return None
