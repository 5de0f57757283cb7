"""Sessions that move between machines: uploaded to object storage after every finished step, fetched by later workers.

A machine uploads a session only if no other machine has uploaded it since: a worker that was suspended must not
overwrite newer work.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

from agent.protocol.events import StepCompleted
from agent.service.open_service import OpenService
from agent.service.workspaces.handover import archive_session, restore_session, session_key
from agent.service.workspaces.storage import ArchiveStore, BucketSettings, StoredArchive, open_archive_store
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary.errors import AgentError
from tooling.contract.json_codec import encode
from tooling.files.atomic_write import write_atomic

# In the folder of a session: the archive it was last stored as, or came from.
_MARK = "transferred.json"
_FOLLOW_S = 1.0


def open_transfer(opened: OpenService, warn: Callable[[str], None]) -> "SessionTransfer | None":
    """Return the transfer of sessions to other machines, if a bucket is configured."""
    settings = opened.settings
    if not settings.s3_bucket:
        return None
    bucket = BucketSettings(
        bucket=settings.s3_bucket,
        endpoint=settings.s3_endpoint or "",
        access_key=settings.s3_access_key or "",
        secret_key=settings.s3_secret_key or "",
        region=settings.s3_region,
        has_path_style=settings.s3_force_path_style,
    )
    return SessionTransfer(SessionStore(opened.data), open_archive_store(opened.data / "archives", bucket), warn)


class SessionTransfer:
    """Uploads and fetches sessions; a failed upload is reported by `warn`, and the session stays on this machine."""

    def __init__(self, sessions: SessionStore, archives: ArchiveStore, warn: Callable[[str], None]) -> None:
        self._sessions = sessions
        self._archives = archives
        self._warn = warn

    async def fetch(self, session_id: str) -> None:
        """Fetch a session that another machine has worked on since. Raises ArchiveError on failure."""
        folder, archive = self._sessions.folder_for(session_id), await self._stored(session_id)
        if archive is None:
            return
        if self._is_current(folder, archive):
            self._mark(folder, archive)
            return
        await restore_session(self._sessions, session_id, self._archives, replaces=True)
        # Uploaded again, so that the previous machine sees that the session moved.
        self._mark(folder, await archive_session(self._sessions, session_id, self._archives))

    async def store(self, session_id: str) -> None:
        """Upload a session for other machines."""
        await self._store(session_id, is_running=False)

    async def follow(self, session_id: str) -> None:
        """Upload a running session after every finished step, until cancelled."""
        folder, seen = self._sessions.folder_for(session_id), 0
        while True:
            await asyncio.sleep(_FOLLOW_S)
            finished = await asyncio.to_thread(_finished_steps, folder)
            if finished > seen:
                seen = finished
                await self._store(session_id, is_running=True)

    async def _store(self, session_id: str, *, is_running: bool) -> None:
        folder = self._sessions.folder_for(session_id)
        if not folder.events.exists():
            return
        try:
            archive = await self._stored(session_id)
            if archive and not self._is_ours(folder, archive):
                self._warn(f"session {session_id} was not stored: another machine has it now")
                return
            archive = await archive_session(self._sessions, session_id, self._archives, is_running=is_running)
            self._mark(folder, archive)
        except AgentError as error:
            # A file that changes while it is read is read again after the next step.
            if not is_running:
                self._warn(f"session {session_id} was not stored for other machines: {error.message}")

    async def _stored(self, session_id: str) -> StoredArchive | None:
        found = await self._archives.list(session_key(session_id))
        return found[0] if found else None

    def _is_ours(self, folder: SessionFolder, archive: StoredArchive) -> bool:
        """Whether this machine stored or fetched the archive last."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return bool(json.loads((folder.root / _MARK).read_text())["modified_at"] == encode(archive.modified_at))
        return False

    def _is_current(self, folder: SessionFolder, archive: StoredArchive) -> bool:
        """Whether the local session equals the archive or is newer, after a worker of this machine was killed."""
        if self._is_ours(folder, archive):
            return True
        if (folder.root / _MARK).exists():
            return False
        try:
            changed = datetime.fromtimestamp(folder.events.stat().st_mtime, UTC)
        except FileNotFoundError:
            return False
        return changed > archive.modified_at

    def _mark(self, folder: SessionFolder, archive: StoredArchive) -> None:
        write_atomic(folder.root / _MARK, json.dumps({"modified_at": encode(archive.modified_at)}).encode())


def _finished_steps(folder: SessionFolder) -> int:
    try:
        return sum(1 for _ in read_lines(folder.events, only=StepCompleted.type))
    except OSError:
        return 0
