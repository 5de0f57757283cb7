"""One run's place in the world: its session, its ids, its folder, its channel; closed whatever happens."""

import contextlib
import os
import traceback
import uuid
from datetime import UTC, datetime
from pathlib import Path

from agent.protocol.channel import Channel
from agent.sessions.lock import LockTimeout, acquire_lock
from agent.sessions.log.event_log import FileLog, last_seq
from agent.sessions.store import SessionFolder, SessionStore, new_session_id
from agent.sessions.views.session_summary import SessionRecord, read_session, refresh_session
from agent.vocabulary.errors import AgentError, InputError
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.files.temp_dir import TempDir
from tooling.safety.secrets.redact import Redactor

BUG = "this is a bug in Windlass"
# One local user: the id only has to be the same for every run of one account.
_USER = uuid.uuid5(uuid.NAMESPACE_URL, f"windlass:user:{os.getuid()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLocation:
    """What a person may choose about where a run works and what is kept of it."""

    data_dir: Path
    session_id: str | None = None
    is_ephemeral: bool = False
    cwd: Path | None = None
    extra_dirs: tuple[Path, ...] = ()


class RunScope:
    """Holds the session for one run; an ephemeral one leaves nothing behind."""

    def __init__(self, place: SessionLocation, secrets: tuple[str, ...], patience: LockTimeout) -> None:
        self._location = place
        asked_for = _existing_folder(place.cwd) if place.cwd else None
        self.extra_dirs = tuple(_existing_folder(path) for path in place.extra_dirs)
        self._temp_dir = TempDir() if place.is_ephemeral else None
        store = SessionStore(self._temp_dir.path if self._temp_dir else place.data_dir)
        self.folder: SessionFolder = store.open(place.session_id or new_session_id(datetime.now(UTC)))
        self.cwd = asked_for or self.folder.workspace
        self._lock = acquire_lock(self.folder, patience)
        self._lock.write_holder("")
        now = datetime.now(UTC)
        self.run_id = f"run-{now:%Y%m%d%H%M%S}-{uuid.uuid4().hex[:6]}"
        self.date = f"{now:%Y-%m-%d}"
        self._log = None if place.is_ephemeral else FileLog(self.folder.events)
        self.redactor = Redactor(secrets)
        self.channel = Channel(
            session_id=self.folder.id,
            run_id=self.run_id,
            log=self._log,
            first_seq=last_seq(self.folder.events) + 1,
            redactor=self.redactor,
        )

    @property
    def data_dir(self) -> Path:
        """Return where this user's sessions and memory live."""
        return self._location.data_dir

    @property
    def is_persistent(self) -> bool:
        """Say whether the session's folder outlives the run."""
        return self._temp_dir is None

    @property
    def is_own_workspace(self) -> bool:
        """Say whether commands work in a folder made for this session, not in one of the person's."""
        return self._location.cwd is None

    def session(self) -> SessionRecord:
        """Return what the session holds so far."""
        return read_session(self.folder)

    def record_request(self, request: str) -> None:
        """Let whoever waits for the session know what is done in it."""
        with contextlib.suppress(OSError):
            self._lock.write_holder(self.redactor.redact(request))

    def ctx_of(self, step_id: str) -> ExecCtx:
        """Return the context in which a step's tools are called."""
        return ExecCtx(
            user_id=_USER,
            task_id=uuid.uuid5(_USER, f"{self.run_id}:{step_id}"),
            working_dir=self.cwd,
            session_id=self.folder.id,
            step_id=step_id,
            extra_dirs=self.extra_dirs,
            outputs_dir=self.folder.outputs,
            blobs_dir=self.folder.blobs,
        )

    def save_traceback(self) -> str:
        """Save the traceback of the exception being handled, and return a hint that says where it is."""
        if not self.is_persistent:
            return f"{BUG}; its traceback is saved when the run is not ephemeral"
        path = self.folder.root / "crash.txt"
        try:
            path.touch(mode=0o600)
            path.write_text(self.redactor.redact(traceback.format_exc()), "utf-8", "backslashreplace")
        except OSError:
            return BUG
        return f"{BUG}; its traceback is in {path}"

    async def close(self) -> str | None:
        """Let everybody hear the rest, refresh SESSION.json, let go; return what went wrong, if anything."""
        await self.channel.close()
        problem: str | None = None
        try:
            if self._log:
                self._log.close()
                aside = refresh_session(self.folder)
                problem = f"SESSION.json was damaged; it is kept as {aside.name} and made anew" if aside else None
        except OSError as error:
            problem = f"SESSION.json was not written: {error.strerror}"
        self._lock.release()
        if self._temp_dir:
            self._temp_dir.remove()
        return problem


def open_scope(place: SessionLocation, secrets: tuple[str, ...], patience: LockTimeout | None = None) -> RunScope:
    """Open the session of a run once it is free; a disk that is full or not writable is told as such."""
    try:
        return RunScope(place, secrets, patience or LockTimeout())
    except OSError as error:
        problem = f"the session cannot be kept in {place.data_dir}: {error.strerror}"
        raise AgentError(problem, "free some space, set AGENT_SANDBOX to another folder, or use --ephemeral") from error


def _existing_folder(path: Path) -> Path:
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise InputError(f"{path} is not a folder that exists")
    return folder.resolve()
