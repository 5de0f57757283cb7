"""The changes to review: of the work tree, else of the branch; of a branch or a range."""

import subprocess
from pathlib import Path

import pytest

from agent.vocabulary.errors import UsageError
from agent.workspace.git_diff import MAX_DIFF_CHARS, NO_REPOSITORY, NOTHING_CHANGED, ChangeReader, Changes
from tests.programs import needs

pytestmark = needs("git")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, environ, "init", "-q", "-b", "main")
    commit(folder, environ, "a.txt", "one\n")
    git(folder, environ, "checkout", "-q", "-b", "feature")
    commit(folder, environ, "b.txt", "two\n")
    return folder


def git(folder: Path, environ: dict[str, str], *words: str) -> None:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, env=environ, check=True, capture_output=True)


def commit(folder: Path, environ: dict[str, str], name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, environ, "add", ".")
    git(folder, environ, "commit", "-q", "-m", name)


def test_without_a_name_the_uncommitted_changes_are_read(repository: Path, environ: dict[str, str]) -> None:
    (repository / "a.txt").write_text("changed\n")
    (repository / "new.txt").touch()
    changes = ChangeReader(repository, environ).read("")
    assert (changes.command, changes.untracked) == ("git diff HEAD", ("new.txt",))
    assert "+changed" in changes.describe() and changes.describe().endswith("not track yet: new.txt\n")


@pytest.mark.parametrize(
    ("revision", "command"),
    [
        ("", "git diff main...HEAD"),
        ("main", "git diff main...HEAD"),
        ("feature", "git diff main...feature"),
        ("main..feature", "git diff main..feature"),
    ],
)
def test_a_branch_is_compared_with_the_main_one(
    repository: Path, environ: dict[str, str], revision: str, command: str
) -> None:
    changes = ChangeReader(repository, environ).read(revision)
    assert changes.command == command
    assert "+two" in changes.diff and "+one" not in changes.diff


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", "main..nowhere"])
def test_what_is_no_revision_is_refused(repository: Path, environ: dict[str, str], revision: str) -> None:
    with pytest.raises(UsageError, match="is not a branch, commit or range"):
        ChangeReader(repository, environ).read(revision)


def test_nothing_to_review_is_said(repository: Path, environ: dict[str, str], tmp_path: Path) -> None:
    git(repository, environ, "checkout", "-q", "main")
    with pytest.raises(UsageError, match=NOTHING_CHANGED):
        ChangeReader(repository, environ).read("")
    with pytest.raises(UsageError, match=NO_REPOSITORY):
        ChangeReader(tmp_path, environ)


def test_a_repository_that_could_run_programs_is_not_read(repository: Path, environ: dict[str, str]) -> None:
    (repository / "a.txt").write_text("changed\n")
    git(repository, environ, "config", "filter.x.clean", "touch ran; cat")
    with pytest.raises(UsageError, match="settings run programs"):
        ChangeReader(repository, environ).read("")


def test_a_long_diff_is_cut_at_the_end_of_a_line_and_that_is_said() -> None:
    text = Changes(command="git diff HEAD", diff="+line\n" * 40_000).describe()
    assert len(text) < MAX_DIFF_CHARS + 100
    assert text.endswith("+line\n[6,667 more lines; read the files]\n")
