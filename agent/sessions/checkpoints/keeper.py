"""Keeps the checkpoint of a workspace on disk while a run works in it: one thread at a time."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.sessions.checkpoints.checkpoints import Workspace
from agent.sessions.checkpoints.pack import IndexHead, IndexLine, OpenedPack, Pack
from agent.sessions.checkpoints.record_changes import ChangeRecorder, FoundChanges, shown_path
from agent.sessions.checkpoints.tree import Difference, FolderTree, Limits
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
        self._blobs = BlobStore(blobs)
        self._recorder = ChangeRecorder(pack, self._blobs, secrets)

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

    def close(self) -> None:
        """Delete everything that was saved and not changed."""
        _release(self._pack, self._trees, self._watch)

    def _hash_after(self, difference: Difference) -> str | None:
        after = difference.after
        return self._blobs.put(self._pack.read(after), is_synced=False) if after and after.is_saved else None


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
