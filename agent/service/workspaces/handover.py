"""Moves a session between machines: its event log, step results and workspace as one archive."""

import asyncio
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from agent.service.workspaces.archive import SUFFIX, ArchiveError, ArchiveLimits, pack, unpack
from agent.service.workspaces.storage import ArchiveStore, StoredArchive
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from agent.sessions.upkeep.fork import rewrite_line
from agent.sessions.upkeep.gc import REMOVED_PREFIX, delete_tree
from agent.sessions.views.session_summary import read_log, write_session
from agent.vocabulary.errors import InputError
from tooling.files.atomic_write import TEMP_SUFFIX
from tooling.files.temp_dir import TempDir

_SESSION, _WORKSPACE = "session", "workspace"
# Locks, temporary and rebuildable files, and the checkpoint of an unfinished command, which is not resumed.
_LEFT_OUT = frozenset({"session/lock", "session/SESSION.json", "session/checkpoint", "session/workspace"})


def session_key(session_id: str) -> str:
    """Return the storage key of a session."""
    return f"sessions/{session_id}{SUFFIX}"


async def archive_session(
    sessions: SessionStore,
    session_id: str,
    archives: ArchiveStore,
    limits: ArchiveLimits | None = None,
    *,
    is_running: bool = False,
) -> StoredArchive:
    """Store a session with its workspace. Raises SessionBusy if it is running, ArchiveError if it is too large.

    With `is_running` it is stored as a crash would leave it now: every step that its log marks as finished has its
    result and its files. A session that works in one of the user's folders is stored without that folder.
    """
    folder = sessions.find(session_id)
    with TempDir() as temporary:
        file = temporary / f"{folder.id}{SUFFIX}"
        await asyncio.to_thread(_pack, folder, file, limits, is_running)
        return await archives.put(session_key(folder.id), file)


async def restore_session(
    sessions: SessionStore,
    session_id: str,
    archives: ArchiveStore,
    limits: ArchiveLimits | None = None,
    *,
    replaces: bool = False,
) -> SessionFolder:
    """Restore a session from a store on this machine, completely or not at all.

    Raises InputError if the session exists here, unless the archive `replaces` it; SessionBusy if it is running here.
    """
    folder = sessions.folder_for(session_id)
    limits = limits or ArchiveLimits()
    if session_id in sessions.ids() and not replaces:
        raise InputError(f"session {session_id} already exists", "remove it first, or choose another id")
    with TempDir() as temporary:
        file = temporary / "archive"
        await archives.fetch(session_key(session_id), file, limits.max_bytes)
        await asyncio.to_thread(_restore, file, folder, sessions.root, limits)
    return folder


def _pack(folder: SessionFolder, file: Path, limits: ArchiveLimits | None, is_running: bool) -> None:  # noqa: FBT001 (called through a thread)
    lock = None if is_running else SessionLock(folder)
    try:
        # The log is read first, so that everything it refers to exists when it is read.
        pack(
            {_SESSION: folder.root, _WORKSPACE: folder.workspace},
            file,
            info={
                "kind": _SESSION,
                "session_id": folder.id,
                "workspace": str(folder.workspace),
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            limits=limits,
            is_left_out=is_transient,
        )
    finally:
        if lock:
            lock.release()


def is_transient(path: str) -> bool:
    """Return whether a file of a session's folder is meaningless on another machine."""
    return path in _LEFT_OUT or (path.startswith(f"{_SESSION}/") and path.endswith(TEMP_SUFFIX))


def _restore(file: Path, folder: SessionFolder, root: Path, limits: ArchiveLimits) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Names with a dot are never listed as sessions, and gc removes the leftovers of a crash.
    unpacked = root / f"{REMOVED_PREFIX}{folder.id}.{secrets.token_hex(4)}"
    try:
        info = unpack(file, unpacked, limits)
        if info.get("kind") != _SESSION or info.get("session_id") != folder.id:
            raise ArchiveError(f"the archive is not that of session {folder.id}")
        built = _rebuild(unpacked, folder, str(info.get("workspace", "")))
        _put_in_place(built, folder, root)
    finally:
        if unpacked.exists():
            delete_tree(unpacked)


def _rebuild(unpacked: Path, folder: SessionFolder, old_workspace: str) -> Path:
    """Build the session's folder from the parts of an archive, with the paths of this machine in its log."""
    built = SessionFolder(id=folder.id, root=unpacked / _SESSION)
    if not built.root.is_dir() or built.root.is_symlink():
        raise ArchiveError("the archive has no session")
    workspace = unpacked / _WORKSPACE
    workspace.mkdir(mode=0o700, exist_ok=True)
    workspace.rename(built.workspace)
    built.outputs.mkdir(mode=0o700, exist_ok=True)
    if built.events.is_symlink() or not built.events.is_file():
        raise ArchiveError("the archive has no event log")
    lines = built.events.read_bytes().splitlines(keepends=True)
    paths = {old_workspace: str(folder.workspace)}
    built.events.write_bytes(b"".join(rewrite_line(line, folder.id, paths) for line in lines))
    write_session(built.summary, read_log(built))
    return built.root


def _put_in_place(built: Path, folder: SessionFolder, root: Path) -> None:
    """Rename the new folder into place; an old one is first moved away under its lock."""
    lock, trash = None, root / f"{REMOVED_PREFIX}{folder.id}.{secrets.token_hex(4)}"
    try:
        if os.path.lexists(folder.root):
            lock = SessionLock(folder)
            folder.root.rename(trash)
        built.rename(folder.root)
    finally:
        if lock:
            lock.release()
        if trash.exists():
            delete_tree(trash)
