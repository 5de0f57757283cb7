"""Turns differences between two checkpoints into file changes, with the contents that undo needs."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent.sessions.changes.changes import mode_diff
from agent.sessions.checkpoints.pack import Entry, Pack
from agent.sessions.checkpoints.tree import Difference
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange
from tooling.contract.secrets import Secrets
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import as_text
from tooling.files.file_diff import compute_change
from tooling.files.sensitive_files import is_sensitive_file

NOT_SAVED = "{path} is too large to be saved, or cannot be read"
ODD_FILE = "{path} is a pipe, a socket or a device"
# Number of diffs that are stored; further ones are computed on demand.
_MAX_DIFFS = 40
_MAX_DIFF_BYTES = 500_000
_MAX_SEARCHED_BYTES = 2_000_000
# Beyond this it is faster to flush everything at once.
_MAX_SINGLE_SYNCS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChanges:
    """The changes between two checkpoints, and the ones that cannot be restored."""

    changes: tuple[FileChange, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was changed."""
        return not self.changes and not self.skipped


class ChangeRecorder:
    """Saves the contents of changed files in a session's blobs and describes the changes."""

    def __init__(self, pack: Pack, blobs: BlobStore, secrets: Secrets) -> None:
        self._pack = pack
        self._blobs = blobs
        self._secrets = secrets

    def record(self, differences: Iterable[tuple[str, Difference]]) -> FoundChanges:
        """Save and describe differences, each given with its path for display; may raise OSError."""
        changes: list[FileChange] = []
        skipped: list[str] = []
        differences = list(differences)
        is_synced = len(differences) <= _MAX_SINGLE_SYNCS
        for path, (_, before, after) in differences:
            kinds = {entry.kind for entry in (before, after) if entry}
            if "other" in kinds:
                skipped.append(ODD_FILE.format(path=path))
            elif any(entry and entry.kind != "folder" and not entry.is_saved for entry in (before, after)):
                skipped.append(NOT_SAVED.format(path=path))
            else:
                has_diff = len(changes) < _MAX_DIFFS and not is_sensitive_file(path)
                changes.append(self._change(path, before, after, has_diff=has_diff, is_synced=is_synced))
        if changes and not is_synced:
            os.sync()
        return FoundChanges(changes=tuple(changes), skipped=tuple(skipped))

    def _change(
        self, path: str, before: Entry | None, after: Entry | None, *, has_diff: bool, is_synced: bool
    ) -> FileChange:
        old, new = self._content(before), self._content(after)
        has_diff = has_diff and len(old or b"") + len(new or b"") <= _MAX_DIFF_BYTES
        if old is not None:
            self._blobs.put(old, is_synced=is_synced)
        if new is not None:
            self.save_after(new)
        shown = (old, new) if has_diff else (old and b"", new and b"")
        change = compute_change(path, *map(as_text, shown), mask_lines=self._secrets.mask_lines)
        known = after or before
        assert known is not None
        return replace(
            change,
            status=_status(before, after),
            diff=change.diff or mode_diff(path, before and before.mode, after and after.mode),
            before=_hash(old),
            after=_hash(new),
            mode=before.mode if before else None,
            after_mode=after.mode if after else None,
            kind=_kind(known),
        )

    def save_after(self, data: bytes) -> str:
        """Save a content from after a change, and return its hash.

        Undo does not need it, so a content with a secret, or too large to scan for one, is not saved. Not synced: the
        file itself has it.
        """
        if len(data) <= _MAX_SEARCHED_BYTES and not self._secrets.find_secrets(as_text(data) or ""):
            return self._blobs.put(data, is_synced=False)
        return content_hash(data)

    def _content(self, entry: Entry | None) -> bytes | None:
        if entry is None:
            return None
        return b"" if entry.kind == "folder" else self._pack.read(entry)


def _status(before: Entry | None, after: Entry | None) -> Literal["added", "modified", "deleted"]:
    return "added" if before is None else "deleted" if after is None else "modified"


def _kind(entry: Entry) -> Literal["file", "link", "folder"]:
    return "link" if entry.kind == "link" else "folder" if entry.kind == "folder" else "file"


def _hash(data: bytes | None) -> str | None:
    return None if data is None else content_hash(data)


def shown_path(root: Path, path: str, cwd: Path) -> str:
    """Return a path for display: relative to the working folder if it is inside."""
    full = root / path
    return str(full.relative_to(cwd)) if full.is_relative_to(cwd) else str(full)
