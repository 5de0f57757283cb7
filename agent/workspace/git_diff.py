"""The changes to review: of the work tree, of a branch, or of a range of commits."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.vocabulary.errors import AgentError, UsageError
from agent.workspace.git_command import DIFF, Repository, find_repository, run_git
from tooling.contract.fast_dataclass import dataclass
from tooling.output import decode_output

MAX_DIFF_CHARS = 200_000
_LIMIT_S = 30.0
_UNTRACKED = ("ls-files", "--others", "--exclude-standard", "-z")
_MAIN_BRANCHES = ("main", "master", "trunk", "develop")
NO_REPOSITORY = "this folder is not in a git repository of yours"
NOTHING_CHANGED = "there is nothing to review"
_UNREADABLE = "git could not read the changes; a repository whose settings run programs is not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A diff, the command that shows it, and new files not contained in it."""

    command: str
    diff: str
    untracked: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the changes as the output of their command, truncated at the end of a line if they are too long."""
        kept = self.diff
        if len(kept) > MAX_DIFF_CHARS:
            kept = kept[: kept.rfind("\n", 0, MAX_DIFF_CHARS) + 1]
            kept += f"[{self.diff.count(chr(10)) - kept.count(chr(10)):,} more lines; read the files]\n"
        files = f"new files that git does not track yet: {', '.join(self.untracked)}\n" if self.untracked else ""
        return f"$ {self.command}\n{kept}{files}"


class ChangeReader:
    """Reads the changes of the repository around a folder."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        repository = find_repository(folder)
        if repository is None:
            raise UsageError(NO_REPOSITORY)
        self._repository: Repository = repository
        self._environ = environ

    def read(self, revision: str) -> Changes:
        """Return the changes of a branch or range; without one, those not committed, else those of this branch."""
        if revision:
            return self._compare(self._range(revision))
        changed = self._diff("HEAD")
        untracked = tuple(filter(None, decode_output(self._git(*_UNTRACKED) or b"").split("\0")))
        if changed.diff or untracked:
            return Changes(command=changed.command, diff=changed.diff, untracked=untracked)
        base = self._main_branch()
        return self._compare(f"{base}...HEAD" if base else "HEAD")

    def branches(self) -> list[str]:
        """Return the names of the local branches."""
        return decode_output(self._git("for-each-ref", "--format=%(refname:short)", "refs/heads") or b"").splitlines()

    def _compare(self, revision: str) -> Changes:
        changes = self._diff(revision)
        if not changes.diff:
            raise UsageError(f"{NOTHING_CHANGED}: {changes.command} is empty")
        return changes

    def _range(self, revision: str) -> str:
        """Return the range for a branch: its commits that are not in the main branch."""
        names: Sequence[str] = revision.replace("...", "..").split("..")
        if revision.startswith("-") or not all(self._exists(name or "HEAD") for name in names):
            raise UsageError(
                f"{revision!r} is not a branch, commit or range", "/review, /review BRANCH or /review A..B"
            )
        if len(names) > 1:
            return revision
        base = self._main_branch()
        if not base or revision in (base, base.rpartition("/")[2]):
            return f"{revision}...HEAD"
        return f"{base}...{revision}"

    def _main_branch(self) -> str:
        if remote := self._git("symbolic-ref", "--short", "refs/remotes/origin/HEAD"):
            return decode_output(remote).strip()
        return next((name for name in _MAIN_BRANCHES if self._exists(name)), "")

    def _exists(self, revision: str) -> bool:
        return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}") is not None

    def _diff(self, revision: str) -> Changes:
        diff = self._git(*DIFF, "--ignore-submodules=all", revision, "--")
        if diff is None:
            raise UsageError(_UNREADABLE, f"!git diff {revision} includes it in your next request")
        return Changes(command=f"git diff {revision}", diff=decode_output(diff))

    def _git(self, *words: str) -> bytes | None:
        try:
            return run_git(self._repository, self._environ, *words, limit_s=_LIMIT_S)
        except AgentError:
            return None
