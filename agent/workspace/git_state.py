"""The branch of a repository and whether it has changes, found without running anything that the repository names."""

import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass

LIMIT_S = 0.3
_HEAD_PREFIX = "ref: refs/heads/"
_COMMIT_CHARS = 8
_MAX_BYTES = 64_000
# Content filters and merge drivers are programs that only the user's own settings may name. An include can hide them.
_RUNS_PROGRAMS = ("filter", "include", "driver")
_NO_PROGRAMS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
NO_FETCHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository: its work tree, and the folder with its HEAD."""

    root: Path
    git_dir: Path


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that contains a folder, if both have the same owner."""
    owner = folder.stat().st_uid
    for parent in (folder, *folder.parents):
        # A parent with another owner could contain anything, including a planted `.git`.
        if parent.stat().st_uid != owner:
            return None
        mark = parent / ".git"
        if mark.is_dir():
            return Repository(root=parent, git_dir=mark)
        if text := _read_small(mark):
            prefix, _, target = text.strip().partition("gitdir: ")
            return Repository(root=parent, git_dir=parent / target) if target and not prefix else None
    return None


def describe_head(repository: Repository) -> str:
    """Return the branch, or the commit of a detached HEAD; empty if HEAD cannot be read."""
    head = _read_small(repository.git_dir / "HEAD").strip()
    if head.startswith(_HEAD_PREFIX):
        return f"branch {head.removeprefix(_HEAD_PREFIX)}"
    is_commit = len(head) >= 2 * _COMMIT_CHARS and all(char in "0123456789abcdef" for char in head)
    return f"detached at {head[:_COMMIT_CHARS]}" if is_commit else ""


def count_changes(repository: Repository, environ: Mapping[str, str], limit_s: float = LIMIT_S) -> int | None:
    """Return how many paths are changed or untracked; None if that is not safe or not quick to find out."""
    listed = run_git(repository, environ, *_STATUS, limit_s=limit_s)
    return None if listed is None else listed.count(b"\0")


def run_git(repository: Repository, environ: Mapping[str, str], *words: str, limit_s: float) -> bytes | None:
    """Return the output of a git command that reads; None if it fails, takes too long or could run other programs."""
    program = shutil.which("git", path=environ.get("PATH"))
    if program is None or not Path(program).is_absolute() or not is_safe(repository):
        return None
    env = {name: environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if name in environ}
    # Named, because git may otherwise take a folder of the work tree for the repository.
    env |= {**NO_FETCHING, "GIT_DIR": str(repository.git_dir), "GIT_WORK_TREE": str(repository.root)}
    try:
        finished = subprocess.run(
            (program, *_NO_PROGRAMS, *words),
            cwd=repository.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return finished.stdout if finished.returncode == 0 else None


def common_git_dir(repository: Repository) -> Path:
    """Return the folder that all worktrees of a repository share."""
    return (repository.git_dir / (_read_small(repository.git_dir / "commondir").strip() or ".")).resolve()


def is_safe(repository: Repository) -> bool:
    """Whether the repository is the user's own and its settings cannot make git run a program."""
    git_dir, common = repository.git_dir, common_git_dir(repository)
    if any(path.stat().st_uid != os.getuid() for path in (repository.root, git_dir, common)):
        return False
    for path in (common / "config", git_dir / "config.worktree"):
        text = _read_small(path).lower()
        if any(word in text for word in _RUNS_PROGRAMS) or len(text) >= _MAX_BYTES:
            return False
    return True


def _read_small(path: Path) -> str:
    """Return the beginning of a regular file; empty if it is missing or something else."""
    try:
        # Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(_MAX_BYTES).decode("utf-8", "backslashreplace") if is_regular else ""
    except OSError:
        return ""


class GitLookup:
    """Looks at a folder's repository in a thread, which is started early because git takes milliseconds."""

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
