"""The scope of one run: its locked session, ids, folder and event channel, released when it is closed."""

import asyncio
import contextlib
import os
import traceback
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.user_dirs import check_data_folder, current_folder
from agent.protocol.channel import Channel
from agent.sessions.checkpoints.checkpoints import Checkpoints
from agent.sessions.checkpoints.command_window import Workspace
from agent.sessions.lock import LockTimeout, acquire_lock
from agent.sessions.log.event_log import FileLog, last_seq
from agent.sessions.store import SessionFolder, SessionStore, new_session_id
from agent.vocabulary.errors import AgentError, InputError
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import NotRegularFile
from tooling.safety.secrets.redact import Redactor

if TYPE_CHECKING:
    from agent.sessions.checkpoints.keeper import KeptCheckpoint
    from agent.sessions.views.session_summary import RunRecord, SessionRecord
    from agent.workspace.worktrees import Worktree
    from tooling.files.temp_dir import TempDir

BUG = "this is a bug in Windlass"
_EARLIER_RUNS = 3
# One local user: the id only has to be the same for every run of one account.
_USER = uuid.uuid5(uuid.NAMESPACE_URL, f"windlass:user:{os.getuid()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLocation:
    """Working folder and session folder of a run, as chosen by the user."""

    data_dir: Path
    session_id: str | None = None
    is_ephemeral: bool = False
    cwd: Path | None = None
    extra_dirs: tuple[Path, ...] = ()
    # Read-only folders of tools and commands, and variables of commands.
    read_dirs: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    # The folders of this program, and the user's home folders.
    own_dirs: tuple[Path, ...] = ()
    homes: tuple[Path, ...] = ()
    # The git worktree of this run, if any.
    worktree: "Worktree | None" = None
    # Stores the checkpoint for the next run of this process.
    kept_checkpoint: "KeptCheckpoint | None" = None


class RunScope:
    """Holds a session's lock for one run; an ephemeral session is deleted at the end."""

    def __init__(
        self, location: SessionLocation, secrets: tuple[str, ...], lock_timeout: LockTimeout, *, is_shared: bool = False
    ) -> None:
        self._location = location
        self._chat_type = "group" if is_shared else "private"
        chosen_cwd = _existing_folder(location.cwd) if location.cwd else None
        self.extra_dirs = tuple(_existing_folder(path) for path in location.extra_dirs)
        self.read_dirs = tuple(_existing_folder(path) for path in location.read_dirs)
        self._temp_dir = open_temp_dir() if location.is_ephemeral else None
        if location.is_ephemeral:
            # Checked nevertheless: it contains the memory.
            check_data_folder(location.data_dir)
        store = SessionStore(self._temp_dir.path if self._temp_dir else location.data_dir)
        self.folder: SessionFolder = store.open(location.session_id or new_session_id(datetime.now(UTC)))
        # Part of the context of every step, and a property creates them anew.
        self._outputs, self._blobs = self.folder.outputs, self.folder.blobs
        self.cwd = chosen_cwd or self.folder.workspace
        self._lock = acquire_lock(self.folder, lock_timeout)
        self._lock.write_holder("")
        self.redactor = Redactor(secrets)
        self._record_lost_changes()
        now = datetime.now(UTC)
        self.run_id = f"run-{now:%Y%m%d%H%M%S}-{uuid.uuid4().hex[:6]}"
        self.date = f"{now:%Y-%m-%d}"
        # The trace of commands and callbacks, if any (W3C Trace Context).
        self.traceparent = ""
        self._log = None if location.is_ephemeral else FileLog(self.folder.events)
        self.channel = Channel(
            session_id=self.folder.id,
            run_id=self.run_id,
            log=self._log,
            first_seq=last_seq(self.folder.events) + 1,
            redactor=self.redactor,
        )

    def _record_lost_changes(self) -> None:
        """Record the changes by commands of a killed run, before this run is logged."""
        kept = self._location.kept_checkpoint
        if self.folder.checkpoint.exists() and not (kept and kept.holds(self.folder.checkpoint)):
            from agent.sessions.checkpoints.recovery import recover

            recover(self.folder, self.redactor)

    @property
    def data_dir(self) -> Path:
        """Return the folder of this user's sessions and memory."""
        return self._location.data_dir

    @property
    def is_persistent(self) -> bool:
        """Return whether the session's folder outlives the run."""
        return self._temp_dir is None

    @property
    def uses_session_workspace(self) -> bool:
        """Return whether commands run in a folder created for this session, not in one of the user's."""
        return self._location.cwd is None

    @property
    def skill_folder(self) -> Path:
        """Return the folder for copies of skills: in a workspace of the session, never in the user's folder."""
        return self.cwd / ".skills" if self.uses_session_workspace else self.folder.outputs / "skills"

    @property
    def worktree(self) -> "Worktree | None":
        """Return the git worktree of this run, if any."""
        return self._location.worktree

    @property
    def deletes_files(self) -> bool:
        """Return whether the working folder is deleted at the end of the run."""
        return self.uses_session_workspace and not self.is_persistent

    def session(self) -> "SessionRecord":
        """Return the summary of the session so far."""
        from agent.sessions.views.session_summary import read_session

        return read_session(self.folder)

    def earlier_exchanges(self) -> list[str]:
        """Return the latest requests of the session before this run, and their answers."""
        runs = self._earlier_runs()[-_EARLIER_RUNS:]
        said = [(f"the user asked: {run.user}", f"the agent answered: {run.final}") for run in runs if run.final]
        return [text for exchange in said for text in exchange]

    def earlier_requests(self) -> list[str]:
        """Return all requests of the session before this run."""
        return [run.user for run in self._earlier_runs()]

    def _earlier_runs(self) -> "list[RunRecord]":
        from agent.sessions.views.session_summary import active_runs

        return [run for run in active_runs(self.session().runs) if run.run_id != self.run_id]

    def record_request(self, request: str) -> None:
        """Store the request in the lock, for processes that wait for this session."""
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
            read_dirs=self.read_dirs,
            variables=self._location.variables,
            own_dirs=self._location.own_dirs,
            homes=self._location.homes,
            outputs_dir=self._outputs,
            blobs_dir=self._blobs,
            traceparent=self.traceparent,
            skill_dirs=() if self.uses_session_workspace else (self.skill_folder,),
            chat_type=self._chat_type,
        )

    def open_checkpoints(self, *hidden: Path) -> Checkpoints:
        """Return the checkpoints of this run's commands; changes of an ephemeral run cannot be undone later.

        `hidden` are folders that commands do not see, in addition to the sessions.
        """
        workspace = Workspace(
            cwd=self.cwd,
            folder=self.folder.checkpoint if self.is_persistent else None,
            blobs=self.folder.blobs,
            run_id=self.run_id,
            extra_dirs=self.extra_dirs,
            hidden=(self.data_dir, *hidden),
        )
        kept = self._location.kept_checkpoint
        return Checkpoints(workspace, channel=self.channel, secrets=self.redactor, kept=kept)

    def save_traceback(self) -> str:
        """Save the traceback of the current exception, and return a hint with its location."""
        if not self.is_persistent:
            return f"{BUG}; its traceback is saved when the run is not ephemeral"
        path = self.folder.root / "crash.txt"
        try:
            path.touch(mode=0o600)
            path.write_text(self.redactor.redact(traceback.format_exc()), "utf-8", "backslashreplace")
        except OSError:
            return BUG
        return f"{BUG}; its traceback is in {path}"

    async def close(self, wait_closed: Callable[[], Awaitable[None]] | None = None) -> str | None:
        """Deliver pending events, refresh SESSION.json and release the lock; return a problem, if any.

        The lock is held until `wait_closed` returns, because the run uses the folder until then.
        """
        await self.channel.close()
        problem: str | None = None
        try:
            if self._log:
                self._log.close()
                from agent.sessions.views.session_summary import refresh_session

                # In a thread: what is being closed goes on while it waits for the disk.
                aside = await asyncio.to_thread(refresh_session, self.folder)
                problem = (
                    f"SESSION.json was damaged and has been rebuilt; the damaged file is now {aside.name}"
                    if aside
                    else None
                )
        except OSError as error:
            problem = f"SESSION.json was not written: {error.strerror}"
        finally:
            if wait_closed:
                await wait_closed()
        self._lock.release()
        if self._temp_dir:
            self._temp_dir.remove()
        return problem


def open_scope(
    location: SessionLocation,
    secrets: tuple[str, ...],
    lock_timeout: LockTimeout | None = None,
    *,
    is_shared: bool = False,
) -> RunScope:
    """Open the session of a run once it is free; raises AgentError if it cannot be stored.

    On a shared machine, stricter rules apply to commands.
    """
    try:
        return RunScope(location, secrets, lock_timeout or LockTimeout(), is_shared=is_shared)
    except NotRegularFile as error:
        raise AgentError(f"{error.filename} is {error.strerror}", "remove it, or use another --session") from error
    except OSError as error:
        problem = f"cannot store the session in {location.data_dir}: {error.strerror}"
        raise AgentError(problem, "free some space, set AGENT_SANDBOX to another folder, or use --ephemeral") from error


def _existing_folder(path: Path) -> Path:
    folder = path.expanduser()
    folder = folder if folder.is_absolute() else current_folder() / folder
    if not folder.is_dir():
        raise InputError(f"{path} is not an existing folder")
    return folder.resolve()


def open_temp_dir() -> "TempDir":
    """Create the folder of a session that leaves nothing behind."""
    from tooling.files.temp_dir import TempDir

    return TempDir()
