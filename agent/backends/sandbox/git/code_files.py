"""The files of a repository that git executes, reads as configuration, or would write to."""

import enum
import os
from collections.abc import Iterator
from pathlib import Path

from agent.backends.sandbox.git.index_entries import index_files
from agent.backends.sandbox.git.named_paths import resolve_steps
from agent.backends.sandbox.git.repositories import is_store, linked_worktrees
from agent.backends.sandbox.types import split_words
from tooling.contract.fast_dataclass import dataclass

# Paths that git reads in a repository, and in the part of it that belongs to a linked worktree.
STORE_CODE = ("config", "config.worktree", "commondir", "hooks")
WORKTREE_CODE = ("commondir", "gitdir", "config.worktree")
# The suffix of what was disabled: git runs no hook with it.
BLOCKED = ".blocked"
_INACTIVE = (".sample", BLOCKED)
_MAX_HOOKS = 200
# Names of git's hooks, for a folder that is unreadable or has too many files.
_HOOK_NAMES = split_words(
    """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    post-index-change p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit
    """
)


class Kind(enum.Enum):
    """What a file means to git, and so how it is cleaned."""

    CONFIG = enum.auto()
    HOOK = enum.auto()
    COMMON_DIR = enum.auto()
    # The path of a linked worktree.
    WORK_TREE = enum.auto()
    # `.git`, if it is not the repository itself.
    POINTER = enum.auto()
    # Steps, strategy and options of a rebase or cherry-pick in progress: steps may run commands, and a strategy is a
    # program. Git itself changes these files, so they cannot be protected.
    STEPS = enum.auto()
    STRATEGY = enum.auto()
    OPTIONS = enum.auto()
    # Remotes in the form that git used before it had a configuration.
    REMOTE = enum.auto()
    INDEX = enum.auto()
    # A file of another kind, or a link.
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    """A file that exists, and its kind."""

    path: Path
    kind: Kind


_KINDS = {
    "config": Kind.CONFIG,
    "config.worktree": Kind.CONFIG,
    "commondir": Kind.COMMON_DIR,
    "gitdir": Kind.WORK_TREE,
    "rebase-merge/git-rebase-todo": Kind.STEPS,
    "rebase-merge/strategy": Kind.STRATEGY,
    "sequencer/opts": Kind.OPTIONS,
}


def code_files(store: Path) -> Iterator[CodeFile]:
    """Yield the existing files of a repository that git executes or reads as configuration."""
    for folder in (store, *linked_worktrees(store)):
        for name, kind in _KINDS.items():
            if os.path.lexists(folder / name) and (folder != store or name != "gitdir"):
                yield CodeFile(path=folder / name, kind=kind)
    yield from hook_files(store / "hooks")
    for folder in (store / "remotes", store / "branches"):
        yield from (CodeFile(path=path, kind=Kind.REMOTE) for path in _files_below(folder))


def index_code(store: Path) -> Iterator[CodeFile]:
    """Yield the indexes of a repository and of its linked worktrees."""
    for folder in (store, *linked_worktrees(store)):
        yield from (CodeFile(path=path, kind=Kind.INDEX) for path in index_files(folder))


def hook_files(folder: Path) -> Iterator[CodeFile]:
    """Yield the hooks in a folder and the files below that they may load, and links on the way to the folder."""
    *links, folder = resolve_steps(folder)
    yield from (CodeFile(path=link, kind=Kind.HOOK) for link in links)
    by_name = [folder / name for name in _HOOK_NAMES if os.path.lexists(folder / name)]
    # In a folder with everything else, the other files are no part of a hook.
    others = [] if os.path.lexists(folder / ".git") or is_store(folder) else _files_below(folder)
    for path in dict.fromkeys((*by_name, *others)):
        yield CodeFile(path=path, kind=Kind.HOOK)


def _files_below(folder: Path) -> list[Path]:
    """Return the files and links in a folder and below, except those that git ignores as hooks; not too many."""
    found: list[Path] = []
    pending = [folder]
    while pending and len(found) < _MAX_HOOKS:
        try:
            with os.scandir(pending.pop(0)) as entries:
                inner = list(entries)
        except OSError:
            continue
        pending += [Path(entry.path) for entry in inner if entry.is_dir(follow_symlinks=False)]
        others = (entry for entry in inner if not entry.is_dir(follow_symlinks=False))
        found += [Path(entry.path) for entry in others if not entry.name.endswith(_INACTIVE)]
    return found[:_MAX_HOOKS]
