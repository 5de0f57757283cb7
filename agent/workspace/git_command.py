"""Runs git outside the sandbox without executing anything that a repository or a workspace could name.

Commands of a run may have written everything in the workspace: its configuration, hooks and attributes, its `.git`,
even a program called git.
"""

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent.backends.process.environment import path_outside
from agent.vocabulary.errors import AgentError, UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

RUNS_PROGRAMS = "the settings of this repository (.git/config) include other files or can make git run programs"
_POINTER_BYTES = 4096
_GITFILE = b"gitdir: "
# Filters and merge drivers are programs that only the user's settings may name; no option disables all of them.
# An include can hide them, and options for merging can sign with a program.
_REFUSED = lazy_pattern(r"filter\..*|include(if)?\..*|merge\..*\.driver|branch\..*\.mergeoptions", re.DOTALL)
_REFUSED_WORDS = (b"filter", b"include", b"driver", b"mergeoptions")
_NO_PROGRAMS = (
    "--no-pager",
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgSign=false", "-c", "merge.verifySignatures=false", "-c", "log.showSignature=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "merge.autoStash=false"),
    # Git would start itself in a submodule and read its settings.
    *("-c", "submodule.recurse=false", "-c", "diff.submodule=short", "-c", "status.submoduleSummary=false"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
}
DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv")


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
        if text := read_start(mark):
            target = os.fsdecode(text.removeprefix(_GITFILE).rstrip(b"\r\n"))
            is_pointer = text.startswith(_GITFILE) and target
            return Repository(root=parent, git_dir=parent / target) if is_pointer else None
    return None


def common_git_dir(repository: Repository) -> Path:
    """Return the folder that all worktrees of a repository share."""
    named = os.fsdecode(read_start(repository.git_dir / "commondir").rstrip(b"\r\n"))
    return (repository.git_dir / (named or ".")).resolve()


def find_program(name: str, environ: Mapping[str, str], *workspaces: Path) -> str | None:
    """Return a program that commands cannot have written: from a PATH folder outside of the workspaces."""
    import shutil

    return shutil.which(name, path=path_outside(environ, workspaces))


def run_git(
    repository: Repository, environ: Mapping[str, str], *words: str, limit_s: float, codes: tuple[int, ...] = (0,)
) -> bytes:
    """Return the output of a git command.

    Raises UsageError for a repository that could make git run programs, and AgentError with git's message if it fails.
    """
    program = find_program("git", environ, *_folders(repository))
    if program is None:
        raise AgentError("git is not installed")
    try:
        if not _is_safe(repository):
            raise UsageError(RUNS_PROGRAMS, "move such settings to ~/.gitconfig")
        done = subprocess.run(
            (program, *_NO_PROGRAMS, *words),
            cwd=repository.root,
            env=_environment(repository, environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(f"git {words[0]} failed: {error}") from error
    if done.returncode not in codes:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise AgentError(f"git {words[0]} failed: {said}")
    return done.stdout


def _environment(repository: Repository, environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in environ}
    # All three are passed, so that git uses the checked folders and does not search for others.
    return {
        **kept,
        **_ENVIRONMENT,
        "PATH": path_outside(environ, _folders(repository)),
        "GIT_DIR": str(repository.git_dir),
        "GIT_COMMON_DIR": str(common_git_dir(repository)),
        "GIT_WORK_TREE": str(repository.root),
    }


def _folders(repository: Repository) -> tuple[Path, Path]:
    """Return the work tree, and the main one if it is a linked worktree."""
    return repository.root, common_git_dir(repository).parent


def _is_safe(repository: Repository) -> bool:
    """Whether the repository is the user's own and its settings cannot make git run a program."""
    git_dir, common = repository.git_dir, common_git_dir(repository)
    if any(path.stat().st_uid != os.getuid() for path in (repository.root, git_dir, common)):
        return False
    return all(_is_safe_config(path) for path in (common / "config", git_dir / "config.worktree"))


def _is_safe_config(path: Path) -> bool:
    if path.exists() and not path.is_file():
        return False
    from agent.backends.sandbox.git.config_entries import MAX_CONFIG_BYTES, parse_entries

    text = read_start(path, MAX_CONFIG_BYTES)
    if not any(word in text.lower() for word in _REFUSED_WORDS):
        return len(text) < MAX_CONFIG_BYTES
    entries = parse_entries(text)
    return entries is not None and not any(_REFUSED.fullmatch(key) for key, _ in entries)


def read_start(path: Path, limit: int = _POINTER_BYTES) -> bytes:
    """Return the beginning of a regular file; empty if it is missing or something else."""
    try:
        # Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""
