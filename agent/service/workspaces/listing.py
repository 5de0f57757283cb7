"""Workspaces and their files as programs read them: the JSON of `agent workspaces list` and of the API."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from agent.service.workspaces.layout import Workspace, is_running, measure
from tooling.contract.fast_dataclass import dataclass

MAX_FILES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    """A workspace with its size."""

    user_id: str
    session_id: str
    container_mode: str
    is_running: bool
    files: int
    size_bytes: int
    last_used: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFile:
    """A file in a workspace, by its path in it; `kind` is file, folder or link."""

    path: str
    kind: str
    size_bytes: int
    modified_at: str


def workspace_row(workspace: Workspace, *, ignores_dot_files: bool) -> WorkspaceRow:
    """Return the row of one workspace."""
    size = measure(workspace.path, ignores_dot_files=ignores_dot_files)
    return WorkspaceRow(
        user_id=workspace.user_id,
        session_id=workspace.session_id,
        container_mode=workspace.mode,
        is_running=is_running(workspace),
        files=size.files,
        size_bytes=size.size_bytes,
        last_used=_utc(workspace.last_used),
        path=str(workspace.path),
    )


def list_files(workspace: Workspace, *, ignores_dot_files: bool) -> list[WorkspaceFile]:
    """Return the files of a workspace, sorted; symlinks are not followed, and a very long list is truncated."""
    found: list[WorkspaceFile] = []
    for path in _walk(workspace.path, ignores_dot_files=ignores_dot_files):
        if len(found) == MAX_FILES:
            break
        try:
            stat = path.lstat()
        except OSError:
            continue
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        name = str(path.relative_to(workspace.path))
        found.append(WorkspaceFile(path=name, kind=kind, size_bytes=stat.st_size, modified_at=_utc(stat.st_mtime)))
    return sorted(found, key=lambda file: file.path)


def _walk(root: Path, *, ignores_dot_files: bool) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        if ignores_dot_files:
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = [name for name in names if not name.startswith(".")]
        yield from (Path(folder, name) for name in (*folders, *names))


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
