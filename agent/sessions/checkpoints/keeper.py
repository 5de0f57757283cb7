"""Maintains the checkpoint of a workspace on disk during a run; used by one thread at a time."""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agent.sessions.checkpoints.command_window import Workspace
from agent.sessions.checkpoints.pack import IndexHead, IndexLine, OpenedPack, Pack
from agent.sessions.checkpoints.record_changes import ChangeRecorder, FoundChanges, shown_path
from agent.sessions.checkpoints.tree import Difference, FolderTree, Limits, TooLarge
from agent.sessions.checkpoints.watch import FolderWatch
from tooling.contract.secrets import Secrets
from tooling.files.blobs import BlobStore

# A folder with fewer entries is looked at in less time than the kernel takes to end a watch, which a run without
# commands would wait for when it exits: such a folder is watched from the first look on.
SMALL_FOLDER_ENTRIES = 500


class Found(NamedTuple):
    """A difference with the number of its root and its path for display."""

    root: int
    path: str
    difference: Difference

    @property
    def changed_ns(self) -> int | None:
        """Time of the last change; None if the path is gone."""
        return self.difference.after.ctime_ns if self.difference.after else None


class CheckpointKeeper:
    """Saves the workspace, and finds and records changes since the last scan."""

    def __init__(
        self,
        cwd: Path,
        blobs: Path,
        pack: Pack,
        trees: Sequence[FolderTree],
        secrets: Secrets,
        watch: FolderWatch | None = None,
        *,
        is_watched_later: bool = False,
    ) -> None:
        self._is_watched_later = is_watched_later
        self._cwd = cwd
        self._pack = pack
        self._trees = trees
        self._watch = watch
        # Changed folders reported by inotify since the last scan; None means all of them.
        self._changed: set[str] | None = set() if watch else None
        self._recorder = ChangeRecorder(pack, BlobStore(blobs), secrets)

    @classmethod
    def create(
        cls,
        workspace: Workspace,
        secrets: Secrets,
        *,
        limits: Limits | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        is_watching: bool = True,
    ) -> "CheckpointKeeper":
        """Save the workspace as it is now; raises TooLarge, Stopped and OSError."""
        is_watched_later = is_watching and _is_small(workspace.roots)
        watch = _open_watch() if is_watching and not is_watched_later else None
        assert workspace.folder is not None
        pack = Pack.create(workspace.folder)
        trees: list[FolderTree] = []
        try:
            for number, root in enumerate(workspace.roots):
                tree = FolderTree(number, root, pack, watch=watch, hidden=workspace.hidden, limits=limits)
                trees.append(tree)
                tree.build(is_stopped)
            lines = (line for tree in trees for line in tree.lines())
            head = IndexHead(run_id=workspace.run_id, cwd=workspace.cwd, roots=workspace.roots, hidden=workspace.hidden)
            pack.begin_index(head, lines)
        except BaseException:
            _release(pack, trees, watch)
            raise
        return cls(workspace.cwd, workspace.blobs, pack, trees, secrets, watch, is_watched_later=is_watched_later)

    @classmethod
    def reopen(cls, opened: OpenedPack, blobs: Path, secrets: Secrets) -> "CheckpointKeeper":
        """Reopen the checkpoint of a killed process."""
        trees: list[FolderTree] = []
        for number, root in enumerate(opened.head.roots):
            # A removed folder cannot be compared; its contents are not restored.
            with contextlib.suppress(OSError):
                tree = FolderTree(number, root, opened.pack, hidden=opened.head.hidden)
                tree.load({path: entry for (of, path), entry in opened.entries.items() if of == number})
                trees.append(tree)
        return cls(opened.head.cwd, blobs, opened.pack, trees, secrets)

    def is_unchanged(self) -> bool:
        """Return whether inotify has reported no change since the last scan; takes no time."""
        new = self._watch.changed() if self._watch else None
        self._changed = None if new is None or self._changed is None else self._changed | new
        return self._changed == set()

    def look(self) -> list[Found]:
        """Return the changes since the last scan; raises TooLarge and OSError."""
        if self.is_unchanged():
            return []
        if self._is_watched_later:
            self._start_watch()
        changed, self._changed = self._changed, set() if self._watch else None
        return [
            Found(tree.number, shown_path(tree.root, difference.path, self._cwd), difference)
            for tree in self._trees
            for difference in tree.refresh(changed)
        ]

    def _start_watch(self) -> None:
        """Watch all folders from now on; what has changed in them before is looked for once."""
        self._is_watched_later = False
        watch = _open_watch()
        if watch and not all(tree.watch(watch) for tree in self._trees):
            watch.close()
            watch = None
        self._watch = watch

    def record(self, found: Iterable[Found]) -> FoundChanges:
        """Save the contents before and after, and describe the changes; raises OSError."""
        return self._recorder.record((one.path, one.difference) for one in found)

    def save_after(self, found: Iterable[Found]) -> dict[str, str | None]:
        """Save the current contents of changed files; return their hashes by path."""
        return {one.path: self._hash_after(one.difference) for one in found}

    def commit(self, found: Iterable[Found]) -> None:
        """Mark these changes as recorded in the index."""
        self._pack.commit(
            IndexLine(root=one.root, path=one.difference.path, entry=one.difference.after) for one in found
        )

    def pause(self) -> None:
        """Stop recording until another run resumes it; raises OSError."""
        self._pack.pause()

    def resume(self, workspace: Workspace) -> bool:
        """Resume for another run from the current state of the workspace; False if that is not possible.

        Only changes since the last scan are read. Raises TooLarge and OSError.
        """
        if not self._pack.is_paused():
            return False
        found = self.look()
        lines = (IndexLine(root=one.root, path=one.difference.path, entry=one.difference.after) for one in found)
        head = IndexHead(run_id=workspace.run_id, cwd=workspace.cwd, roots=workspace.roots, hidden=workspace.hidden)
        self._pack.resume(head, lines)
        return True

    def close(self) -> None:
        """Delete saved contents that did not change."""
        _release(self._pack, self._trees, self._watch)

    def _hash_after(self, difference: Difference) -> str | None:
        after = difference.after
        return self._recorder.save_after(self._pack.read(after)) if after and after.is_saved else None


class KeptCheckpoint:
    """The checkpoint of the last run in the REPL, reused by the next run of the same session."""

    def __init__(self) -> None:
        self._workspace: Workspace | None = None
        self._keeper: CheckpointKeeper | None = None

    def holds(self, folder: Path) -> bool:
        """Whether the checkpoint in a session's folder is this one, and not that of a killed run."""
        return self._keeper is not None and self._workspace is not None and self._workspace.folder == folder

    def keep(self, keeper: CheckpointKeeper, workspace: Workspace) -> None:
        """Store the checkpoint of a finished run; raises OSError."""
        keeper.pause()
        self._keeper, self._workspace = keeper, workspace

    def take(self, workspace: Workspace) -> CheckpointKeeper | None:
        """Return the stored checkpoint, updated for a run, if it has the same workspace."""
        keeper, before, self._keeper = self._keeper, self._workspace, None
        if keeper is None or before is None:
            return None
        with contextlib.suppress(OSError, TooLarge):
            if replace(before, run_id=workspace.run_id) == workspace and keeper.resume(workspace):
                return keeper
        keeper.close()
        return None

    def close(self) -> None:
        """Delete the stored checkpoint."""
        keeper, self._keeper = self._keeper, None
        if keeper:
            keeper.close()


def _is_small(roots: Iterable[Path]) -> bool:
    """Return whether the folders have few entries; of a large one, no more is read than that takes."""
    pending, count = [os.fspath(root) for root in roots], 0
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > SMALL_FOLDER_ENTRIES:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
    return True


def _open_watch() -> FolderWatch | None:
    try:
        return FolderWatch()
    except OSError:
        return None


def _release(pack: Pack, trees: Iterable[FolderTree], watch: FolderWatch | None) -> None:
    for tree in trees:
        tree.close()
    if watch:
        watch.close()
    pack.remove()
