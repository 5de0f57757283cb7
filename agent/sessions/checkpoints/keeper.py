"""Keeps the checkpoint of a workspace on disk while a run works in it: one thread at a time."""

import contextlib
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


class Found(NamedTuple):
    """A difference with the number of its root and its path for display."""

    root: int
    path: str
    difference: Difference

    @property
    def changed_ns(self) -> int | None:
        """When the path was last changed; None if it is gone."""
        return self.difference.after.ctime_ns if self.difference.after else None


class CheckpointKeeper:
    """Saves the workspace, and finds and records what has changed in it since the last look."""

    def __init__(
        self,
        cwd: Path,
        blobs: Path,
        pack: Pack,
        trees: Sequence[FolderTree],
        secrets: Secrets,
        watch: FolderWatch | None = None,
    ) -> None:
        self._cwd = cwd
        self._pack = pack
        self._trees = trees
        self._watch = watch
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
        watch = _open_watch() if is_watching else None
        assert workspace.folder is not None
        pack = Pack.create(workspace.folder)
        trees: list[FolderTree] = []
        try:
            for number, root in enumerate(workspace.roots):
                tree = FolderTree(
                    number, root, pack, watch=watch, hidden=workspace.hidden, limits=limits, is_stopped=is_stopped
                )
                trees.append(tree)
                tree.build()
            lines = (line for tree in trees for line in tree.lines())
            head = IndexHead(run_id=workspace.run_id, cwd=workspace.cwd, roots=workspace.roots, hidden=workspace.hidden)
            pack.begin_index(head, lines)
        except BaseException:
            _release(pack, trees, watch)
            raise
        return cls(workspace.cwd, workspace.blobs, pack, trees, secrets, watch)

    @classmethod
    def reopen(cls, opened: OpenedPack, blobs: Path, secrets: Secrets) -> "CheckpointKeeper":
        """Take over what a killed process had saved."""
        trees: list[FolderTree] = []
        for number, root in enumerate(opened.head.roots):
            # A folder that is gone has nothing to compare; what was in it is not restored.
            with contextlib.suppress(OSError):
                tree = FolderTree(number, root, opened.pack, hidden=opened.head.hidden)
                tree.load({path: entry for (of, path), entry in opened.entries.items() if of == number})
                trees.append(tree)
        return cls(opened.head.cwd, blobs, opened.pack, trees, secrets)

    def look(self) -> list[Found]:
        """Return what has changed since the last look; raises TooLarge and OSError."""
        changed = self._watch.changed() if self._watch else None
        return [
            Found(tree.number, shown_path(tree.root, difference.path, self._cwd), difference)
            for tree in self._trees
            for difference in tree.refresh(changed)
        ]

    def record(self, found: Iterable[Found]) -> FoundChanges:
        """Save the contents before and after, and describe the changes; raises OSError."""
        return self._recorder.record((one.path, one.difference) for one in found)

    def save_after(self, found: Iterable[Found]) -> dict[str, str | None]:
        """Save the contents of changed files as they are now; return their hashes by path."""
        return {one.path: self._hash_after(one.difference) for one in found}

    def commit(self, found: Iterable[Found]) -> None:
        """Note in the index that these changes are recorded."""
        self._pack.commit(
            IndexLine(root=one.root, path=one.difference.path, entry=one.difference.after) for one in found
        )

    def pause(self) -> None:
        """Stop recording until another run continues; raises OSError."""
        self._pack.pause()

    def resume(self, workspace: Workspace) -> bool:
        """Continue for another run from the workspace as it is now; false if that is not possible.

        Only what has changed since the last look is looked at. Raises TooLarge and OSError.
        """
        if not self._pack.is_paused():
            return False
        found = self.look()
        lines = (IndexLine(root=one.root, path=one.difference.path, entry=one.difference.after) for one in found)
        head = IndexHead(run_id=workspace.run_id, cwd=workspace.cwd, roots=workspace.roots, hidden=workspace.hidden)
        self._pack.resume(head, lines)
        return True

    def close(self) -> None:
        """Delete everything that was saved and not changed."""
        _release(self._pack, self._trees, self._watch)

    def _hash_after(self, difference: Difference) -> str | None:
        after = difference.after
        return self._recorder.save_after(self._pack.read(after)) if after and after.is_saved else None


class KeptCheckpoint:
    """The checkpoint of the last run at a prompt, from which the next one of the same session continues."""

    def __init__(self) -> None:
        self._workspace: Workspace | None = None
        self._keeper: CheckpointKeeper | None = None

    def holds(self, folder: Path) -> bool:
        """Whether the checkpoint in a session's folder is the kept one, and not that of a killed run."""
        return self._keeper is not None and self._workspace is not None and self._workspace.folder == folder

    def keep(self, keeper: CheckpointKeeper, workspace: Workspace) -> None:
        """Keep the checkpoint of a run that has ended; raises OSError."""
        keeper.pause()
        self._keeper, self._workspace = keeper, workspace

    def take(self, workspace: Workspace) -> CheckpointKeeper | None:
        """Return the kept checkpoint, brought up to date for a run, if it is one of the same workspace."""
        keeper, before, self._keeper = self._keeper, self._workspace, None
        if keeper is None or before is None:
            return None
        with contextlib.suppress(OSError, TooLarge):
            if replace(before, run_id=workspace.run_id) == workspace and keeper.resume(workspace):
                return keeper
        keeper.close()
        return None

    def close(self) -> None:
        """Delete what is kept."""
        keeper, self._keeper = self._keeper, None
        if keeper:
            keeper.close()


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
