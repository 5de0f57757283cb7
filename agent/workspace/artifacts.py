"""The artifacts of a run: files new or changed in `output/`, and files reported by steps, with size and hash."""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from agent.vocabulary.outcome import ArtifactFile
from tooling.files.links_out import opened_path

OUTPUT = "output"
MAX_FILES = 1000


def has_output(workspace: Path) -> bool:
    """Whether there is anything to compare; without the folder, a look takes no time."""
    return os.path.lexists(workspace / OUTPUT)


class OutputFolder:
    """Finds the files a run writes into `output/`, also by commands, by comparing the folder with its earlier state."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._before = self._scan()

    def changed(self) -> tuple[str, ...]:
        """Return the files that are new or changed, as paths relative to the workspace."""
        before = self._before
        return tuple(path for path, state in sorted(self._scan().items()) if before.get(path) != state)

    def _scan(self) -> dict[str, tuple[int, int, int]]:
        """Return inode, size and mtime of every file; links are neither followed nor counted."""
        found: dict[str, tuple[int, int, int]] = {}
        pending = [self._workspace / OUTPUT]
        while pending and len(found) < MAX_FILES:
            folder = pending.pop()
            if folder.is_symlink():
                continue
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    path = str(Path(entry.path).relative_to(self._workspace))
                    found[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
        return found


def describe_files(workspace: Path, paths: Iterable[str]) -> tuple[ArtifactFile, ...]:
    """Return the files among some paths, each with its absolute path, size and hash."""
    return tuple(file for path in paths if (file := _describe(workspace, path)))


def _describe(workspace: Path, path: str) -> ArtifactFile | None:
    full = workspace / path
    try:
        fd = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            real = opened_path(fd) or full
            is_inside = real.is_relative_to(workspace.resolve()) or real == full
            # A parent folder may have been replaced by a link to outside.
            if not stat.S_ISREG(os.fstat(fd).st_mode) or not is_inside:
                return None
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return ArtifactFile(path=str(full), name=path, bytes=os.fstat(file.fileno()).st_size, sha256=digest)
    except OSError:
        return None
