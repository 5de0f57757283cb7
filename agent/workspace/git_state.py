"""The branch of a repository and whether it has changes, determined without executing anything the repository names."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from agent.vocabulary.errors import AgentError
from agent.workspace.git_command import Repository, find_repository, read_start, run_git

LIMIT_S = 0.3
_HEAD_PREFIX = "ref: refs/heads/"
_COMMIT_CHARS = 8
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")


def describe_head(repository: Repository) -> str:
    """Return the branch, or the commit of a detached HEAD; empty if HEAD cannot be read."""
    head = read_start(repository.git_dir / "HEAD").decode("utf-8", "backslashreplace").strip()
    if head.startswith(_HEAD_PREFIX):
        return f"branch {head.removeprefix(_HEAD_PREFIX)}"
    is_commit = len(head) >= 2 * _COMMIT_CHARS and all(char in "0123456789abcdef" for char in head)
    return f"detached at {head[:_COMMIT_CHARS]}" if is_commit else ""


def count_changes(repository: Repository, environ: Mapping[str, str], limit_s: float = LIMIT_S) -> int | None:
    """Return the number of changed or untracked paths; None if counting is unsafe or slow."""
    try:
        return run_git(repository, environ, *_STATUS, limit_s=limit_s).count(b"\0")
    except AgentError:
        return None


class GitLookup:
    """Queries a folder's repository in a thread, started early because git takes milliseconds."""

    def __init__(self, folder: Path, environ: Mapping[str, str], limit_s: float = LIMIT_S) -> None:
        self._folder = folder
        self._environ = environ
        self._limit_s = limit_s
        self._until = time.monotonic() + limit_s
        self._head = ""
        self._changes: int | None = None
        self._thread = threading.Thread(target=self._look, daemon=True, name="git-state")
        self._thread.start()

    def describe(self) -> str:
        """Return branch and state; without the state if it takes too long, empty outside of repositories."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        if not self._head or self._changes is None:
            return self._head
        return f"{self._head}, {_state(self._changes)}"

    def _look(self) -> None:
        try:
            if repository := find_repository(self._folder):
                self._head = describe_head(repository)
                self._changes = count_changes(repository, self._environ, self._limit_s)
        except OSError:
            # A folder that vanishes or cannot be read is described without its repository.
            pass


def _state(changes: int) -> str:
    return f"{changes} path{'' if changes == 1 else 's'} changed or untracked" if changes else "clean"
