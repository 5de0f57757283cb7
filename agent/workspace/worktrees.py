"""Git worktrees of runs: created from HEAD on a separate branch, then merged or discarded without losing changes.

Git runs outside the sandbox, so it must not execute anything that a repository or a run could name.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.vocabulary.errors import AgentError, InputError, UsageError
from agent.workspace.git_command import DIFF, Repository, common_git_dir, find_repository, run_git
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode, encode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import read_regular

NOT_A_REPOSITORY = "--worktree needs a git repository"
NO_COMMIT = "this repository has no commit yet"
CONFLICTS = "the changes conflict with others, so nothing was merged"
_LIMIT_S = 120
_BRANCH_PREFIX = "agent/"
_RECORD = "worktree.json"
_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_]+")
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SUBMODULE = "160000 "
_STEPS_SUFFIX = ".steps"
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A worktree of a run: its folder, the repository it belongs to, and the commit it started from."""

    name: str
    path: str
    git_dir: str
    root: str
    repository_git_dir: str
    base: str

    @property
    def branch(self) -> str:
        return f"{_BRANCH_PREFIX}{self.name}"

    @property
    def common_git_dir(self) -> Path:
        """The git data of the repository, which commands of the run can read."""
        return common_git_dir(self.repository)

    @property
    def steps_dir(self) -> Path:
        """The folder with the worktrees of the run's steps."""
        return Path(self.path).parent.with_name(f"{self.name}{_STEPS_SUFFIX}")

    @property
    def repository(self) -> Repository:
        """The work tree of the user."""
        return Repository(root=Path(self.root), git_dir=Path(self.repository_git_dir))

    @property
    def own(self) -> Repository:
        """The work tree of the run."""
        return Repository(root=Path(self.path), git_dir=Path(self.git_dir))


class Worktrees:
    """The worktrees in a data folder, each in a folder with its record; cleaning up sessions does not touch them."""

    def __init__(self, data_dir: Path, environ: Mapping[str, str]) -> None:
        self._root = data_dir / "worktrees"
        self._environ = environ

    def all(self) -> list[Worktree]:
        """Return all worktrees by name; damaged records are skipped."""
        paths = [*self._root.glob(f"*/{_RECORD}"), *self._root.glob(f"*{_STEPS_SUFFIX}/*/{_RECORD}")]
        found = [worktree for path in paths if (worktree := _read_record(path))]
        return sorted(found, key=lambda worktree: worktree.name)

    def find(self, name: str) -> Worktree:
        """Return the worktree with this name. Raises InputError."""
        found = next((worktree for worktree in self.all() if worktree.name == name), None)
        if found is None:
            raise InputError(f"there is no worktree {name!r}", "`agent worktrees list` shows them")
        return found

    def containing(self, folder: Path) -> Worktree | None:
        """Return the worktree that a folder is in."""
        return next((one for one in self.all() if folder.is_relative_to(one.path)), None)

    def open(self, name: str, folder: Path) -> Worktree:
        """Return the worktree with this name; create it from HEAD of the folder's repository if it is new."""
        if not _NAME.fullmatch(name) or ".." in name or name.endswith((".lock", ".", _STEPS_SUFFIX)):
            raise UsageError(f"{name!r} is not a valid name for a worktree", "use letters, digits and dashes")
        repository = find_repository(folder)
        if repository is None:
            raise UsageError(NOT_A_REPOSITORY, f"{folder} is in none of yours; `git init` makes one")
        if known := _read_record(self._root / name / _RECORD):
            if common_git_dir(known.repository) != common_git_dir(repository):
                raise UsageError(f"the worktree {name} belongs to {known.root}", "choose another name")
            return known
        return self._create(name, repository, self._root)

    def steps_of(self, run: Worktree) -> list[Worktree]:
        """Return the worktrees of steps that were not merged into the worktree of their run."""
        return [worktree for worktree in self.all() if worktree.root == run.path]

    def step_of(self, run: Worktree, step_id: str) -> Worktree | None:
        """Return the worktree of a step, if it has one."""
        return _read_record(run.steps_dir / _step_name(run, step_id) / _RECORD)

    def open_step(self, run: Worktree, step_id: str) -> Worktree:
        """Create the worktree of a step from the last commit of its run."""
        return self._create(_step_name(run, step_id), run.own, run.steps_dir)

    def ignored(self, worktree: Worktree) -> list[str]:
        """Return the top-level ignored paths of a worktree."""
        names = self._git(worktree.own, *_IGNORED).split("\0")
        return [name for name in (name.rstrip("/") for name in names) if name and "/" not in name]

    def _create(self, name: str, repository: Repository, parent: Path) -> Worktree:
        base = self._git(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", codes=(0, 1)).strip()
        if not base:
            raise UsageError(NO_COMMIT, "commit something first")
        folder = parent / name
        for path in (self._root.parent, self._root, parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "tree"
        try:
            self._git(repository, "worktree", "add", "--quiet", "-b", f"{_BRANCH_PREFIX}{name}", str(path), base)
        except AgentError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise
        own = find_repository(path)
        assert own is not None
        worktree = Worktree(
            name=name,
            path=str(path),
            git_dir=str(own.git_dir),
            root=str(repository.root),
            repository_git_dir=str(repository.git_dir),
            base=base,
        )
        self._save(worktree)
        return worktree

    def _save(self, worktree: Worktree) -> None:
        write_atomic(Path(worktree.path).parent / _RECORD, json.dumps(encode(worktree), indent=1).encode())

    def commit(self, worktree: Worktree, message: str) -> bool:
        """Commit everything in the worktree to its branch; return whether the branch has any changes.

        Raises AgentError for a repository in the worktree: git would store none of its files, and its settings could
        make git run programs.
        """
        if nested := self._nested_repositories(worktree):
            problem = f"the worktree {worktree.name} contains other repositories: {', '.join(nested)}"
            raise AgentError(problem, f"move them out of {worktree.path}, or delete their .git")
        self._git(worktree.own, "add", "--all")
        if self._git(worktree.own, *DIFF, "--cached", "--name-only"):
            title = " ".join(message.split())[:72] or worktree.name
            self._git(
                worktree.own,
                *self._identity(worktree),
                "commit",
                "--quiet",
                "--no-verify",
                "--no-gpg-sign",
                "-m",
                title,
            )
        return self._tip(worktree) != worktree.base

    def _nested_repositories(self, worktree: Worktree) -> list[str]:
        others = self._git(worktree.own, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
        staged = self._git(worktree.own, "ls-files", "-z", "--stage").split("\0")
        modules = (entry.partition("\t")[2] for entry in staged if entry.startswith(_SUBMODULE))
        filled = [name for name in modules if Path(worktree.path, name, ".git").exists()]
        return sorted([*(name for name in others if name.endswith("/")), *filled])

    def diff(self, worktree: Worktree, *, is_short: bool = False) -> str:
        """Return the changes since the worktree was created; with `is_short` the number of lines by file."""
        words = (*DIFF, "--stat") if is_short else DIFF
        return self._git(worktree.repository, *words, worktree.base, worktree.branch)

    def merge(self, worktree: Worktree, *, is_kept: bool = False) -> str:
        """Merge into the user's current branch and remove the worktree; return the merged changes by file.

        A worktree that `is_kept` continues from the merged state.

        Raises AgentError if that would touch uncommitted changes or cause conflicts; then
        nothing has changed.
        """
        self.commit(worktree, worktree.name)
        by_hand = f"merge it by hand: git merge {worktree.branch}"
        words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "HEAD", worktree.branch)
        if conflicts := self._git(worktree.repository, *words, codes=(0, 1)).splitlines()[1:]:
            raise AgentError(f"{CONFLICTS}: {', '.join(filter(None, conflicts))}", by_hand)
        summary = self.diff(worktree, is_short=True)
        merge = ("merge", "--quiet", "--no-edit", "--no-verify", "--no-gpg-sign", worktree.branch)
        self._git(worktree.repository, *self._identity(worktree), *merge)
        if is_kept:
            base = self._git(worktree.repository, "rev-parse", "--verify", "HEAD").strip()
            self._git(worktree.own, "merge", "--quiet", "--ff-only", "--no-verify", base)
            self._save(replace(worktree, base=base))
        else:
            self._remove(worktree)
        return summary

    def discard(self, worktree: Worktree) -> str:
        """Remove the worktree and its branch; return the commit with its complete contents."""
        self.commit(worktree, worktree.name)
        commit = self._tip(worktree)
        self._remove(worktree)
        return commit

    def _remove(self, worktree: Worktree) -> None:
        import shutil

        for step in self.steps_of(worktree):
            # Unmerged changes of steps can still be merged into the user's branch.
            self._save(replace(step, root=worktree.root, repository_git_dir=worktree.repository_git_dir))
        self._git(worktree.repository, "worktree", "remove", "--force", worktree.path)
        self._git(worktree.repository, "branch", "--quiet", "-D", worktree.branch)
        shutil.rmtree(Path(worktree.path).parent)
        parent = Path(worktree.path).parent.parent
        is_last_of_run = parent.suffix == _STEPS_SUFFIX and not parent.with_suffix("").exists()
        # Commands of a run keep the folder they were started with, so it stays as long as the run's worktree.
        with contextlib.suppress(OSError):
            (parent if is_last_of_run else worktree.steps_dir).rmdir()

    def _tip(self, worktree: Worktree) -> str:
        return self._git(worktree.repository, "rev-parse", "--verify", f"refs/heads/{worktree.branch}").strip()

    def _identity(self, worktree: Worktree) -> tuple[str, ...]:
        """Return git options for a user who has not configured a name."""
        known = self._git(worktree.repository, "config", "--get", "user.email", codes=(0, 1))
        return () if known else ("-c", "user.name=agent", "-c", "user.email=agent@localhost")

    def _git(self, repository: Repository, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        done = run_git(repository, self._environ, *words, limit_s=_LIMIT_S, codes=codes)
        return done.decode("utf-8", "surrogateescape")


def _step_name(run: Worktree, step_id: str) -> str:
    return f"{run.name}-{_UNSAFE.sub('-', step_id)}"


def _read_record(path: Path) -> Worktree | None:
    try:
        return decode(Worktree, json.loads(read_regular(path)), extra="ignore")
    except (OSError, ValueError, RecursionError):
        return None
