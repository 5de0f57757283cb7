"""Sessions that change machines: put into object storage when a worker is done with them, and fetched by the next."""

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

from agent.service.open_service import OpenService
from agent.service.workspaces.handover import archive_session, restore_session, session_key
from agent.service.workspaces.storage import ArchiveStore, BucketSettings, StoredArchive, open_archive_store
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary.errors import AgentError
from tooling.contract.json_codec import encode
from tooling.files.atomic_write import write_atomic

# In the folder of a session: which archive it was last stored as, or came from.
_MARK = "transferred.json"


def open_transfer(opened: OpenService, warn: Callable[[str], None]) -> "SessionTransfer | None":
    """Return what brings sessions to other machines, if there is a bucket for them."""
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
    """Stores and fetches sessions; what cannot be stored is reported by `warn`, and stays on this machine."""

    def __init__(self, sessions: SessionStore, archives: ArchiveStore, warn: Callable[[str], None]) -> None:
        self._sessions = sessions
        self._archives = archives
        self._warn = warn

    async def fetch(self, session_id: str) -> None:
        """Get a session that another machine has worked on since. Raises ArchiveError if it cannot be had."""
        found = await self._archives.list(session_key(session_id))
        folder = self._sessions.folder_for(session_id)
        if not found or self._is_current(folder, found[0]):
            return
        await restore_session(self._sessions, session_id, self._archives, replaces=True)
        self._mark(folder, found[0])

    async def store(self, session_id: str) -> None:
        """Put a session where other machines find it."""
        folder = self._sessions.folder_for(session_id)
        if not folder.events.exists():
            return
        try:
            self._mark(folder, await archive_session(self._sessions, session_id, self._archives))
        except AgentError as error:
            self._warn(f"session {session_id} was not stored for other machines: {error.message}")

    def _is_current(self, folder: SessionFolder, archive: StoredArchive) -> bool:
        """Whether the session here is that of the archive, or newer: a worker of this machine was killed."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            if json.loads((folder.root / _MARK).read_text())["modified_at"] == encode(archive.modified_at):
                return True
        try:
            changed = datetime.fromtimestamp(folder.events.stat().st_mtime, UTC)
        except FileNotFoundError:
            return False
        return changed > archive.modified_at

    def _mark(self, folder: SessionFolder, archive: StoredArchive) -> None:
        write_atomic(folder.root / _MARK, json.dumps({"modified_at": encode(archive.modified_at)}).encode())
