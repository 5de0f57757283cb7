"""Change several files, all or none: everything is computed and staged before the first file is replaced."""

import contextlib
import os
from collections.abc import Callable

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.contract.secrets import Secrets
from tooling.files.blobs import BlobStore
from tooling.files.change_file import as_text, undoable_change
from tooling.files.file_diff import MAX_PREVIEW_CHARS, compute_change
from tooling.files.pending_write import FileContent, PendingWrite, open_for_write, open_parent
from tooling.files.resolve import ResolvedPath, open_with_retry, resolve_writable


@dataclass(slots=True, kw_only=True)
class _BatchFile:
    """One file: its state when it was read, and its new state; None means that it does not exist."""

    path: str
    target: ResolvedPath
    before: FileContent | None
    after: bytes | None
    mode: int | None = None

    @property
    def is_changed(self) -> bool:
        return self.after != (None if self.before is None else self.before.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StagedWrite:
    """A prepared change: `commit` replaces the file; without it the file is removed."""

    file: _BatchFile
    pending: PendingWrite
    commit: Callable[[], None] | None

    def run(self) -> None:
        if self.commit is not None:
            self.commit()
        elif self.file.before is not None:
            self.pending.remove(over=self.file.before)

    def revert(self) -> None:
        """Restore the content before the change, unless another program has changed it meanwhile."""
        current, before = self.pending.read(), self.file.before
        if (None if current is None else current.data) != self.file.after:
            return
        if before is not None:
            self.pending.replace(before.data, over=current, mode=before.mode)
        elif current is not None:
            self.pending.remove(over=current)


class FileBatch:
    """Reads files, collects their new contents, and writes them together."""

    def __init__(self, ctx: ExecCtx, secrets: Secrets) -> None:
        self._ctx = ctx
        self._secrets = secrets
        self._files: dict[str, _BatchFile] = {}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, with the changes so far, or None if it does not exist."""
        return self._file(path).after

    def write(self, path: str, data: bytes | None, *, like: str | None = None) -> None:
        """Change a file, or delete it with None; a new file gets the permissions of the file `like`."""
        file = self._file(path)
        file.after = data
        if like is not None and (original := self._file(like).before) is not None and file.before is None:
            file.mode = original.mode

    def diff(self) -> str:
        """Return the diff of all changes so far."""
        return "".join(
            compute_change(
                file.target.display_path,
                as_text(None if file.before is None else file.before.data),
                as_text(file.after),
                max_chars=MAX_PREVIEW_CHARS,
                mask_lines=self._secrets.mask_lines,
            ).diff
            for file in self._changed()
        )

    def commit(self) -> tuple[FileChange, ...]:
        """Write all changes; if one of them fails, none remains. The old contents are saved first, for undo."""
        changed = self._changed()
        if self._ctx.blobs_dir is not None:
            store = BlobStore(self._ctx.blobs_dir)
            for file in changed:
                if file.before is not None:
                    store.put(file.before.data)
        with contextlib.ExitStack() as stack:
            staged = [self._stage(file, stack) for file in changed]
            for write in staged:
                write.pending.check_unchanged(write.file.before)
            _write_all(staged)
        return tuple(
            undoable_change(file.target.display_path, file.before, file.after, self._secrets) for file in changed
        )

    def _changed(self) -> list[_BatchFile]:
        return [file for file in self._files.values() if file.is_changed]

    def _file(self, path: str) -> _BatchFile:
        target = resolve_writable(path, self._ctx)
        key = str(target.path)
        if key not in self._files:
            before = self._read(path)
            after = None if before is None else before.data
            self._files[key] = _BatchFile(path=path, target=target, before=before, after=after)
        return self._files[key]

    def _read(self, path: str) -> FileContent | None:
        try:
            folder, target = open_with_retry(lambda: resolve_writable(path, self._ctx), open_parent)
        except FileNotFoundError:
            # Its folder does not exist yet.
            return None
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error.strerror or error}.") from error
        try:
            return PendingWrite(folder, target).read()
        finally:
            os.close(folder)

    def _stage(self, file: _BatchFile, stack: contextlib.ExitStack) -> _StagedWrite:
        opened = open_for_write(lambda: resolve_writable(file.path, self._ctx), makes_folders=file.after is not None)
        pending = stack.enter_context(opened)
        if file.after is None:
            return _StagedWrite(file=file, pending=pending, commit=None)
        commit = stack.enter_context(pending.stage(file.after, over=file.before, mode=file.mode))
        return _StagedWrite(file=file, pending=pending, commit=commit)


def _write_all(staged: list[_StagedWrite]) -> None:
    """Replace and remove the files; on a failure in the middle, restore those already changed."""
    done: list[_StagedWrite] = []
    try:
        for write in staged:
            write.run()
            done.append(write)
    except (OSError, ToolError):
        for write in reversed(done):
            write.revert()
        raise
