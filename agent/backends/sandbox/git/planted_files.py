"""Neutralizes a file that a command planted for git: restores it, renames it, or removes its programs."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from agent.backends.sandbox.git.code_files import BLOCKED
from agent.backends.sandbox.git.config_entries import MAX_CONFIG_BYTES, parse_entries, render_entries, without_programs
from agent.backends.sandbox.git.repositories import GITFILE, MAX_POINTER_BYTES, is_store, read_small, real_path
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.openat2 import open_beneath

_RUNS_COMMAND = lazy_pattern(rb"\s*(exec|x)\b")
# Content that git writes for a linked worktree.
_OWN_REPOSITORY = b"../.."
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def clean_config(root: Path, path: Path, folder: int, before: bytes) -> Iterator[str]:
    """Remove the entries of a configuration that run programs, except those from before the first command."""
    entries = parse_entries(read_small(path, MAX_CONFIG_BYTES))
    trusted = set(parse_entries(before) or ())
    work_tree = next((value for key, value in entries or () if key == "core.worktree"), None)
    if work_tree and "modules" in path.parts and _is_inside(root, path.parent, work_tree):
        # The work tree of a submodule is set in its configuration.
        trusted.add(("core.worktree", work_tree))
    kept, removed = without_programs(entries or (), trusted)
    if entries is None or removed:
        replace(folder, path.name, render_entries(kept))
        yield f"removed {', '.join(dict.fromkeys(removed))}" if entries is not None else "was not readable, emptied"


def clean_rebase(folder: int, path: Path, before: bytes) -> Iterator[str]:
    """Remove the steps of a rebase that run commands, except those from before the first command."""
    text = read_small(path, MAX_CONFIG_BYTES)
    if len(text) == MAX_CONFIG_BYTES:
        yield f"is too long to be checked, renamed to {disable(folder, path.name)}"
        return
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not _RUNS_COMMAND.match(line) or line in before.splitlines(keepends=True)]
    if kept != lines:
        replace(folder, path.name, b"".join(kept))
        yield f"removed {len(lines) - len(kept)} commands of a rebase"


def is_program(strategy: Path) -> bool:
    """Whether the strategy of a rebase is a program of the work tree: git starts `git-merge-NAME`."""
    return b"/" in read_small(strategy, MAX_CONFIG_BYTES)


def names_program(options: Path) -> bool:
    """Whether the options of a cherry-pick have such a strategy."""
    entries = parse_entries(read_small(options, MAX_CONFIG_BYTES))
    return entries is None or any(key == "options.strategy" and "/" in (value or "") for key, value in entries)


def names_helper(remote: Path) -> bool:
    """Whether a remote in the old form has an address that names a program."""
    return b"::" in read_small(remote, MAX_CONFIG_BYTES)


def names_store(gitfile: Path, roots: Collection[Path], stores: Collection[Path]) -> bool:
    """Whether a `.git` file names a repository that names it, too, and that no checkout can create or change.

    Commands cannot change one outside, and paths in `.git` are never checked out. The `stores` are those from before
    the first command.
    """
    text = read_small(gitfile)
    if not text.startswith(GITFILE) or b"\0" in text or len(text) == MAX_POINTER_BYTES:
        return False
    path = Path(os.path.normpath(gitfile.parent / os.fsdecode(text.removeprefix(GITFILE).rstrip(b"\r\n"))))
    if path != real_path(path) or not _is_named_by(path, gitfile):
        return False
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return root is None or ".git" in path.relative_to(root).parts or any(path.is_relative_to(store) for store in stores)


def _is_named_by(store: Path, gitfile: Path) -> bool:
    """Whether a repository of a linked worktree or of a submodule has its work tree around this `.git` file."""
    named = read_small(store / "gitdir").rstrip(b"\r\n").replace(b"\0", b"")
    if named:
        return os.path.normpath(store / os.fsdecode(named)) == str(gitfile)
    entries = parse_entries(read_small(store / "config", MAX_CONFIG_BYTES)) or ()
    work_trees = [value for key, value in entries if key == "core.worktree" and value]
    return any(os.path.normpath(store / value) == str(gitfile.parent) for value in work_trees[-1:])


def disable(folder: int, name: str) -> str:
    """Rename a file so that git ignores it, and return its new name; the usual name may be taken by a command."""
    disabled = name + BLOCKED
    try:
        os.rename(name, disabled, src_dir_fd=folder, dst_dir_fd=folder)
    except PermissionError:
        raise
    except OSError:
        pass
    # If both names are links to one file, the system reports success and renames nothing.
    with contextlib.suppress(FileNotFoundError):
        unused = f"{name}.{os.urandom(8).hex()}{BLOCKED}"
        os.rename(name, unused, src_dir_fd=folder, dst_dir_fd=folder)
        return unused
    return disabled


def _is_inside(root: Path, folder: Path, path: str) -> bool:
    target = Path(os.path.normpath(folder / path))
    return target == real_path(target) and target.is_relative_to(root)


def names_own_repository(path: Path) -> bool:
    """Whether a `commondir` is that of an ordinary worktree, of a repository that is found and checked as such."""
    trees = path.parent.parent
    is_usual = trees.name == "worktrees" and read_small(path).rstrip(b"\r\n") == _OWN_REPOSITORY
    return is_usual and is_store(trees.parent)


@contextlib.contextmanager
def open_parent(root: Path, path: Path) -> Iterator[int]:
    """Open the folder of a path without following links below the root, so that nothing outside is changed."""
    root_fd = os.open(root, _FOLDER_FLAGS)
    try:
        folder = open_beneath(root_fd, str(path.parent.relative_to(root)), _FOLDER_FLAGS)
    finally:
        os.close(root_fd)
    try:
        yield folder
    finally:
        os.close(folder)


def replace(folder: int, name: str, content: bytes, mode: int | None = None) -> None:
    """Replace a file in an open folder atomically; it keeps its permissions, unless others are given."""
    if mode is None:
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    temporary = f"{name}.{os.urandom(4).hex()}"
    fd = os.open(temporary, _CREATE_FLAGS, mode, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        os.fchmod(fd, mode)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
