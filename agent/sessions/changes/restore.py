"""Restores one path to its state before a session changed it: a file, a link, a folder, or nothing."""

import errno
import os
import stat
from dataclasses import replace
from typing import NamedTuple

from agent.sessions.changes.changes import ChangedFile, Kind, resolve_recorded_path
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import as_text
from tooling.files.file_diff import compute_change
from tooling.files.pending_write import PendingWrite, open_for_write, open_parent

NOT_SAVED = "{path}: its original content was not saved."
MODIFIED_SINCE = "{path} was {change} since; --force restores it anyway."
_MODES = {"file": 0o777, "folder": 0o7777}


class NotEmpty(Exception):
    """A folder cannot be removed, because it contains something that the session did not create."""


class _State(NamedTuple):
    """State of a path."""

    kind: Kind
    data: bytes
    mode: int

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, content_hash(self.data)


def restore(file: ChangedFile, blobs: BlobStore, *, is_forced: bool) -> tuple[FileChange, ...]:
    """Restore a path and return the resulting changes; none if there was nothing to do.

    Raises ToolError if the path was changed since or its content is not saved, NotEmpty for a folder that is kept.
    """
    if not file.has_all_hashes:
        raise ToolError(NOT_SAVED.format(path=file.display_path))
    original = None if file.before is None else blobs.read(file.before)
    if file.before is not None and original is None:
        # The content of a folder is always empty, and a link is saved like a file.
        if file.kind_before != "folder":
            raise ToolError(f"{file.display_path}: the saved copy of its original content is missing.")
        original = b""
    if original is None and not _has_parent(file):
        return ()
    with open_for_write(lambda: resolve_recorded_path(file), makes_folders=original is not None) as target:
        current = _read(target)
        if _is_restored(file, current):
            return ()
        if not is_forced:
            _check_unmodified(file, current)
        if current is not None and current.kind != "folder":
            blobs.put(current.data)
        _replace(target, current, file, original)
        return _changes(file, current, original)


def _has_parent(file: ChangedFile) -> bool:
    try:
        os.close(open_parent(resolve_recorded_path(file)))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Reported when it is opened for writing.
        return True
    return True


def _read(target: PendingWrite) -> _State | None:
    """Return the current state of the path; raises ToolError for types that cannot be restored."""
    status = target.status()
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return _State("link", target.read_link(), 0)
    if stat.S_ISDIR(status.st_mode):
        return _State("folder", b"", stat.S_IMODE(status.st_mode))
    content = target.read()
    return None if content is None else _State("file", content.data, content.mode)


def _is_restored(file: ChangedFile, current: _State | None) -> bool:
    if current is None or file.before is None:
        return current is None and file.before is None
    return current.key == (file.kind_before, file.before) and _has_mode(current, file.mode, file.after_mode)


def _has_mode(current: _State, mode: int | None, changed: int | None) -> bool:
    """Whether the mode is the wanted one; changes by file tools do not record it."""
    mask = _MODES.get(current.kind)
    return mask is None or mode is None or changed is None or current.mode & mask == mode & mask


def _check_unmodified(file: ChangedFile, current: _State | None) -> None:
    expected = None if file.after is None else (file.kind_after, file.after)
    is_same_mode = current is None or _has_mode(current, file.after_mode, file.after_mode)
    if (current.key if current else None) != expected or not is_same_mode:
        change = "deleted" if current is None else "changed" if file.after else "created again"
        raise ToolError(MODIFIED_SINCE.format(path=file.display_path, change=change))
    if not file.is_contiguous:
        raise ToolError(f"{file.display_path} was also changed by something else in between; --force undoes that too.")


def _replace(target: PendingWrite, current: _State | None, file: ChangedFile, original: bytes | None) -> None:
    mode = None if file.mode is None else file.mode & _MODES.get(file.kind_before, 0o777)
    if original is not None and file.kind_before == "file" and (current is None or current.kind == "file"):
        target.replace(original, over=target.read(), mode=mode)
        return
    if original is not None and current is not None and current.kind == file.kind_before == "folder":
        target.set_mode(mode)
        return
    if current is not None:
        _remove(target, current)
    if original is None:
        return
    match file.kind_before:
        case "file":
            target.replace(original, over=None, mode=mode)
        case "link":
            target.make_link(original)
        case "folder":
            target.make_folder(mode)


def _remove(target: PendingWrite, current: _State) -> None:
    if current.kind == "file":
        if (content := target.read()) is not None:
            target.remove(over=content)
        return
    try:
        target.remove_other(is_folder=current.kind == "folder")
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise NotEmpty from error
        raise


def _changes(file: ChangedFile, current: _State | None, original: bytes | None) -> tuple[FileChange, ...]:
    """Describe the restoration so that it can be undone, too: replacing an entry by another kind is two changes."""
    if current is not None and original is not None and current.kind != file.kind_before:
        return (_change(file, current, None), _change(file, None, original))
    return (_change(file, current, original),)


def _change(file: ChangedFile, current: _State | None, original: bytes | None) -> FileChange:
    before = None if current is None else current.data
    return replace(
        compute_change(file.display_path, as_text(before), as_text(original)),
        before=None if before is None else content_hash(before),
        after=None if original is None else content_hash(original),
        mode=None if current is None else current.mode,
        after_mode=None if original is None else file.mode,
        kind=file.kind_before if current is None else current.kind,
    )
