"""Built-in hook that writes a manifest of a run's changes next to the session's log."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from agent.hooks.hook import EventHook
from agent.protocol.envelope import Envelope
from agent.protocol.events import FilesChanged
from agent.workspace.git_command import find_repository
from agent.workspace.git_state import describe_head
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode
from tooling.contract.result import FileChange
from tooling.files.atomic_write import write_atomic

MANIFEST = "manifest.json"
# Folders filled by tools, which a manifest leaves out; so are paths with a part that starts with a dot.
IGNORED = frozenset({"node_modules", "__pycache__", "target", "dist", "build", "venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """All changes of one file combined: lines, diffs, and its current size."""

    path: str
    status: str
    added_lines: int
    deleted_lines: int
    diff: str
    bytes: int | None


class WorkspaceHook(EventHook):
    """Writes the manifest of a run: every file changed by its tools and commands, with line counts and diffs.

    Every stored run has one. As a hook it is for programs that want it in another folder.
    """

    def __init__(self, workspace: Path, folder: Path) -> None:
        self._workspace = workspace
        self._folder = folder
        self._run_id = ""
        self._changes: list[FilesChanged] = []

    async def on_event(self, envelope: Envelope) -> None:
        """Record the changes."""
        self._run_id = envelope.run_id
        if isinstance(envelope.event, FilesChanged):
            self._changes.append(envelope.event)

    async def after_execution(self, success: bool, error: str | None) -> None:  # noqa: FBT001 (a published signature)
        """Write the manifest if there are changes."""
        if self._changes:
            await asyncio.to_thread(write_manifest, self._workspace, self._folder, self._run_id, self._changes)


def write_manifest(workspace: Path, folder: Path, run_id: str, changes: Sequence[FilesChanged]) -> None:
    """Write the changes of a run in a workspace to `manifest.json` in a folder. Raises OSError."""
    entries = collect_entries(changes, workspace)
    repository = find_repository(workspace)
    manifest = {
        "run_id": run_id,
        "workspace": str(workspace),
        "repository": str(repository.root) if repository else None,
        "branch": describe_head(repository).removeprefix("branch ") if repository else None,
        "files": len(entries),
        "added_lines": sum(entry.added_lines for entry in entries),
        "deleted_lines": sum(entry.deleted_lines for entry in entries),
        "changes": [encode(entry) for entry in entries],
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    write_atomic(folder / MANIFEST, f"{text}\n".encode("utf-8", "backslashreplace"), is_synced=False)


def collect_entries(changes: Sequence[FilesChanged], workspace: Path) -> list[ManifestEntry]:
    """Return one entry for each file that differs from before, in the order of the first change."""
    by_path: dict[str, list[FileChange]] = {}
    for event in changes:
        for change in event.changes:
            if change.kind != "folder" and not _is_ignored(change.path):
                by_path.setdefault(change.path, []).append(change)
    entries = (_entry(path, made, workspace) for path, made in by_path.items())
    return [entry for entry in entries if entry]


def _entry(path: str, made: Sequence[FileChange], workspace: Path) -> ManifestEntry | None:
    first, last = made[0], made[-1]
    was_there, is_there = first.status != "added", last.status != "deleted"
    if not (was_there or is_there) or (was_there and is_there and first.before == last.after is not None):
        return None
    try:
        size = (workspace / path).stat().st_size if is_there else None
    except OSError:
        size = None
    return ManifestEntry(
        path=path,
        status="modified" if was_there and is_there else "added" if is_there else "deleted",
        added_lines=sum(change.added_lines for change in made),
        deleted_lines=sum(change.deleted_lines for change in made),
        diff="\n".join(change.diff for change in made if change.diff),
        bytes=size,
    )


def _is_ignored(path: str) -> bool:
    return any(part.startswith(".") or part in IGNORED for part in Path(path).parts)
