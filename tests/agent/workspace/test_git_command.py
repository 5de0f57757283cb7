"""Git outside the sandbox runs nothing that a repository or a workspace names, whatever asks it."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.vocabulary.errors import AgentError, UsageError
from agent.workspace.git_command import RUNS_PROGRAMS, find_repository, run_git
from agent.workspace.git_diff import ChangeReader
from agent.workspace.git_state import GitLookup
from agent.workspace.worktrees import Worktrees
from cli.repl.ui.completion import FileIndex
from tests.agent.workspace.test_git_diff import commit, git
from tests.programs import needs

pytestmark = needs("git")


class Planted:
    """A repository with a change, a program that leaves a mark, and the ways to ask git about it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
        self.root = home / "project"
        self.root.mkdir()
        self.mark = home / "ran"
        self.program = self.root / "program"
        git(self.root, self.environ, "init", "-q", "-b", "main")
        commit(self.root, self.environ, "a.txt", "one\n")
        self.program.write_text(f"#!/bin/sh\ntouch {self.mark}\ncat\n")
        self.program.chmod(0o755)
        (self.root / ".gitattributes").write_text("*.txt filter=x diff=x merge=x\n")
        commit(self.root, self.environ, "b.txt", "two\n")
        (self.root / "a.txt").write_text("changed\n")

    def configure(self, *words: str) -> None:
        git(self.root, self.environ, "config", *words)

    def ask_everything(self) -> None:
        """Do all that Windlass does with git outside the sandbox."""
        GitLookup(self.root, self.environ, limit_s=20).describe()
        for revision in ("", "main", "HEAD~1..HEAD"):
            with contextlib.suppress(AgentError):
                ChangeReader(self.root, self.environ).read(revision)
        FileIndex(self.root, self.environ).names()
        self.use_worktree("merged", Worktrees.merge)
        self.use_worktree("discarded", Worktrees.discard)

    def use_worktree(self, name: str, end: Callable[..., object]) -> None:
        worktrees = Worktrees(self.home / "data", self.environ)
        with contextlib.suppress(AgentError):
            worktree = worktrees.open(name, self.root)
            Path(worktree.path, "b.txt").write_text(f"{name}\n")
            Path(worktree.path, "new.txt").write_text("new\n")
            worktrees.commit(worktree, "title")
            worktrees.diff(worktree)
            end(worktrees, worktree)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


SETTINGS = (
    "core.fsmonitor", "core.pager", "pager.diff", "pager.status", "core.editor", "diff.external", "diff.x.command",
    "diff.x.textconv", "filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver", "core.sshCommand",
    "core.askPass", "credential.helper", "interactive.diffFilter", "sequence.editor", "alias.status", "alias.diff",
    "core.alternateRefsCommand", "uploadpack.packObjectsHook", "trailer.x.command", "remote.origin.uploadpack",
)  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_program_in_the_settings_is_not_run(planted: Planted, name: str) -> None:
    planted.configure(name, f"!{planted.program}" if name.startswith("alias.") else str(planted.program))
    planted.ask_everything()
    assert not planted.mark.exists()


def test_no_signing_program_is_run(planted: Planted) -> None:
    planted.configure("gpg.program", str(planted.program))
    for name in ("commit.gpgSign", "tag.gpgSign", "merge.verifySignatures", "log.showSignature"):
        planted.configure(name, "true")
    planted.ask_everything()
    planted.configure("branch.main.mergeOptions", "-S")
    planted.ask_everything()
    assert not planted.mark.exists()


@pytest.mark.parametrize("is_configured", [False, True])
def test_no_hook_is_run(planted: Planted, is_configured: bool) -> None:
    hooks = planted.root / ("hooks" if is_configured else ".git/hooks")
    hooks.mkdir(exist_ok=True)
    for name in (
        *("post-checkout", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"),
        *("post-merge", "post-index-change", "reference-transaction", "fsmonitor-watchman"),
        *("post-rewrite", "pre-auto-gc"),
    ):
        shutil.copy(planted.program, hooks / name)
    if is_configured:
        planted.configure("core.hooksPath", str(hooks))
    planted.ask_everything()
    assert not planted.mark.exists()


@pytest.mark.parametrize(
    "section", ["[include]", '[includeIf "gitdir:**"]', "[INCLUDE]", '[includeIf "onbranch:main"]']
)
def test_settings_are_not_included(planted: Planted, section: str) -> None:
    included = planted.root / "settings"
    included.write_text(f'[filter "x"]\n\tclean = {planted.program}\n\tsmudge = {planted.program}\n')
    with (planted.root / ".git" / "config").open("a") as config:
        config.write(f"{section}\n\tpath = {included}\n")
    planted.ask_everything()
    assert not planted.mark.exists()


@pytest.mark.parametrize("name", [b"evil", b" evil", b"evil ", b"ev\xffil", b"\tevil", b"evil\r"])
def test_another_common_folder_does_not_hide_settings(planted: Planted, name: bytes) -> None:
    store = planted.root / ".git"
    # A harmless folder of the name that a careless reader takes it for is there as well.
    for folder in dict.fromkeys((store / os.fsdecode(name.strip()), store / os.fsdecode(name.rstrip(b"\r")))):
        shutil.copytree(store, folder, ignore=shutil.ignore_patterns("*vil*", "ev*"))
    with (folder / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tclean = {planted.program}\n\tsmudge = {planted.program}\n')
    (store / "commondir").write_bytes(name + b"\n")
    planted.ask_everything()
    assert not planted.mark.exists()


def test_a_git_file_that_leads_to_a_store_in_the_workspace_is_checked_there(planted: Planted) -> None:
    (planted.root / ".git").rename(planted.root / "store")
    (planted.root / ".git").write_text("gitdir: store\n")
    with (planted.root / "store" / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tclean = {planted.program}\n[core]\n\tfsmonitor = {planted.program}\n')
    planted.ask_everything()
    assert not planted.mark.exists()


def test_the_settings_of_a_worktree_are_checked(planted: Planted) -> None:
    planted.configure("extensions.worktreeConfig", "true")
    planted.configure("--worktree", "filter.x.clean", str(planted.program))
    planted.ask_everything()
    assert not planted.mark.exists()


def test_the_settings_of_a_submodule_are_not_used(planted: Planted, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, planted.environ, "init", "-q", "-b", "main")
    commit(inner, planted.environ, "f.txt", "f\n")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "module")
    git(planted.root, planted.environ, *add)
    git(planted.root, planted.environ, "commit", "-qm", "module")
    module = planted.root / "module"
    commit(module, planted.environ, "g.txt", "g\n")
    git(planted.root, planted.environ, "add", "module")
    git(planted.root, planted.environ, "commit", "-qm", "newer")
    (module / ".gitattributes").write_text("* filter=x diff=x\n")
    (module / "f.txt").write_text("changed\n")
    for name in ("core.fsmonitor", "filter.x.clean", "diff.x.textconv", "diff.external"):
        git(module, planted.environ, "config", name, str(planted.program))
    planted.configure("diff.submodule", "diff")
    planted.configure("status.submoduleSummary", "true")
    planted.mark.unlink(missing_ok=True)
    planted.ask_everything()
    assert not planted.mark.exists()


def test_a_git_in_the_workspace_is_not_the_git_that_is_run(planted: Planted) -> None:
    folder = planted.root / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("git", "rg"):
        shutil.copy(planted.program, folder / name)
        shutil.copy(planted.program, planted.root / name)
    link = planted.home / "link"
    link.symlink_to(folder)
    planted.environ["PATH"] = f"{folder}:.::{link}:/usr/bin:/bin"
    planted.ask_everything()
    shutil.rmtree(planted.root / ".git")
    FileIndex(planted.root, planted.environ).names()
    assert not planted.mark.exists()


def test_settings_that_only_look_like_programs_are_no_obstacle(planted: Planted) -> None:
    planted.configure("branch.filter-include-driver.remote", "origin")
    planted.configure("remote.origin.url", "https://example.org/filter.git")
    repository = find_repository(planted.root)
    assert repository is not None
    assert run_git(repository, planted.environ, "rev-parse", "--is-inside-work-tree", limit_s=20) == b"true\n"


@pytest.mark.parametrize("kind", ["pipe", "folder", "too large"])
def test_settings_that_cannot_be_read_are_refused(planted: Planted, kind: str) -> None:
    config = planted.root / ".git" / "config"
    config.unlink()
    if kind == "pipe":
        os.mkfifo(config)
    elif kind == "folder":
        config.mkdir()
    else:
        config.write_text("# comment\n" * 200_000)
    repository = find_repository(planted.root)
    assert repository is not None
    with pytest.raises(UsageError, match=re.escape(RUNS_PROGRAMS)):
        run_git(repository, planted.environ, "status", limit_s=20)


def test_the_plants_work_on_plain_git(planted: Planted) -> None:
    planted.configure("filter.x.clean", str(planted.program))
    subprocess.run(["git", "status"], cwd=planted.root, env=planted.environ, capture_output=True, check=True)
    assert planted.mark.exists()
