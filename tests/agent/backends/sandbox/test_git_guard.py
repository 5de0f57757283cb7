"""What a command leaves for git in an unusual form is taken back; without that, real git runs all of it."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.git.config_entries import hooks_folder_of_user, included_paths
from agent.backends.sandbox.git.guard import GitGuard
from agent.backends.sandbox.git.protection import find_git_paths
from tests.programs import needs

pytestmark = needs("git")

_CONFIG = r"""config() { printf "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = $EVIL\n"; }"""
# A repository with no more than a HEAD: the rest is in the folder that `commondir` names.
_DIVIDED = """
mkdir -p c/objects c/refs n/x n/y
cp .git/HEAD n/x
config > c/config
echo $PWD/c > n/x/commondir
"""
_STOPPED = """
rebasing() {
    git rev-parse HEAD | tee onto orig-head > /dev/null
    echo refs/heads/side > head-name
    : > interactive && : > done
}
git init -q new && cd new
git commit -q --allow-empty -m a
echo 1 > f && git add f && git commit -qm b
picked=$(git rev-parse HEAD)
git checkout -q --detach HEAD~1
echo 2 > g && git add g && git commit -qm c
mkdir git-merge-x && cp $EVIL git-merge-x/evil
"""
# Name → what a command does, and the git command that the user runs in a folder afterwards.
PLANTS = {
    "gitfile with a carriage return": (_DIVIDED + r"printf 'gitdir: ../x\r\n' > n/y/.git", "n/y", "status"),
    "gitfile with a zero byte": (_DIVIDED + r"printf 'gitdir: ../x\0more' > n/y/.git", "n/y", "status"),
    "long gitfile": (
        _DIVIDED + "{ printf 'gitdir: ../x'; yes '' | head -c 90000; } > n/y/.git",
        "n/y",
        "status",
    ),
    "link to a gitfile": (_DIVIDED + "echo gitdir: ../x > n/g; ln -s ../g n/y/.git", "n/y", "status"),
    "divided repository without a work tree": (_DIVIDED + "git config --file c/config alias.st !$EVIL", "n/x", "st"),
    "a zero byte elsewhere": (
        r"mkdir a && printf 'gitdir: x\0' > a/.git && git init -q new && config > new/.git/config",
        "new",
        "status",
    ),
    "a loop of links elsewhere": (
        "mkdir a && ln -s .git a/.git && git init -q new && config > new/.git/config",
        "new",
        "status",
    ),
    "a folder in place of an index elsewhere": (
        "git init -q a && mkdir a/.git/index && git init -q new && config > new/.git/config",
        "new",
        "status",
    ),
    "name of the disabled hook is taken": (
        "git init -q new && cp $EVIL new/.git/hooks/post-commit && mkdir -p new/.git/hooks/post-commit.blocked/x",
        "new",
        "-c core.hooksPath=.git/hooks commit -q --allow-empty -m x",
    ),
    "name of the disabled link is taken": (
        "git init -q new && config > c && ln -sf ../../c new/.git/config && mkdir -p new/.git/config.blocked/x",
        "new",
        "status",
    ),
    "name of the disabled hook is the same file": (
        "git init -q new && cd new/.git/hooks && cp $EVIL post-commit && ln post-commit post-commit.blocked",
        "new",
        "-c core.hooksPath=.git/hooks commit -q --allow-empty -m x",
    ),
    "name of the disabled link is the same link": (
        "git init -q new && config > c && cd new/.git && ln -sf ../../c config && ln -P config config.blocked",
        "new",
        "status",
    ),
    "worktree of a folder without a HEAD": (
        """
        git init -q foo/worktrees && git -C foo/worktrees commit -q --allow-empty -m x
        cd foo/worktrees/.git && mv config objects refs hooks ../.. && echo ../.. > commondir
        cd ../../.. && config > foo/config""",
        "foo/worktrees",
        "status",
    ),
    "steps of a rebase behind a long comment": (
        _STOPPED
        + """
        mkdir .git/rebase-merge && cd .git/rebase-merge
        rebasing
        { printf '# '; yes comment | head -c 1200000 | tr '\\n' ' '; echo; echo exec $EVIL; } > git-rebase-todo""",
        "new",
        "rebase --continue",
    ),
    "steps of a rebase in a linked folder": (
        _STOPPED
        + """
        mkdir rm && ln -s ../rm .git/rebase-merge && cd rm
        rebasing
        echo exec $EVIL > git-rebase-todo""",
        "new",
        "rebase --continue",
    ),
    "an index that takes long to read elsewhere": (
        r"""
        git init -q a
        { printf 'DIRC\0\0\0\4\0\0\0\1'; head -c 24 /dev/zero; printf '\0\0\340\0'; head -c 34 /dev/zero
        head -c 4000000 /dev/zero | tr '\0' '\377'; } > a/.git/index
        git init -q new && config > new/.git/config""",
        "new",
        "status",
    ),
    "configuration of the user": ("config > $HOME_IN/own", ".", "status"),
    "configuration that the user's includes": ("config > $HOME_IN/always", ".", "status"),
    "configuration that the user's includes for some": ("config > $HOME_IN/for-some", ".", "status"),
    "target of an included link": ("config > shared.real", "including", "status"),
    "target of a linked configuration": ("config > linked.config", "linked", "status"),
    "target of linked hooks": ("cp $EVIL team-hooks/post-commit", "linked", "commit -q --allow-empty -m x"),
    "new link to hooks that the user's configuration names": (
        "mkdir h && cp $EVIL h/post-commit && git init -q new && ln -s ../h new/.githooks",
        "new",
        "commit -q --allow-empty -m x",
    ),
    "strategy of a rebase": (
        _STOPPED
        + """
        mkdir .git/rebase-merge && cd .git/rebase-merge
        rebasing
        echo pick $picked b > git-rebase-todo
        echo x/evil > strategy""",
        "new",
        "rebase --continue",
    ),
    "strategy of a cherry-pick": (
        _STOPPED
        + """
        mkdir .git/sequencer && cd .git/sequencer
        git rev-parse HEAD | tee head abort-safety > /dev/null
        printf "pick $picked b\\npick $picked b\\n" > todo
        git config --file opts options.strategy x/evil""",
        "new",
        "cherry-pick --continue",
    ),
}


class Folder:
    """A workspace with a repository that has links, and a home whose configuration names files of the workspace."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.home = folder / "ws", folder / "home"
        self.ran = folder / "ran"
        dotfiles = self.workspace / "dotfiles"
        for path in (dotfiles, self.home, self.workspace / "team-hooks"):
            path.mkdir(parents=True)
        self.evil = self.workspace / "evil.sh"
        self.evil.write_text(f"#!/bin/sh\ntouch {self.ran}\n")
        self.evil.chmod(0o755)
        (dotfiles / "own").write_text(
            f"[include]\n\tpath = {dotfiles}/always\n"
            f'[includeIf "gitdir:{self.workspace}/"]\n\tpath = {dotfiles}/for-some\n'
            "[user]\n\tname = u\n\temail = u@x\n[core]\n\thooksPath = .githooks\n"
        )
        (dotfiles / "always").touch()
        (self.home / ".gitconfig").symlink_to(dotfiles / "own")
        self.run("git init -q -b main && git init -q including && git init -q linked")
        self.run("git -C including config include.path $PWD/shared && touch shared.real && ln -s shared.real shared")
        self.run("mv linked/.git/config linked.config && ln -s ../../linked.config linked/.git/config")
        self.run("git -C linked config core.hooksPath .git/hooks")
        self.run("rm -rf linked/.git/hooks && ln -s ../../team-hooks linked/.git/hooks")

    def run(self, script: str, folder: str = ".") -> None:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "EVIL": str(self.evil)}
        environ |= {"HOME_IN": str(self.workspace / "dotfiles")}
        command = ["bash", "-c", f"{_CONFIG}\n{script}"]
        subprocess.run(command, cwd=self.workspace / folder, env=environ, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize("name", PLANTS)
def test_an_unusual_form_is_found_too(name: str, tmp_path: Path) -> None:
    script, used_in, used = PLANTS[name]
    folder = Folder(tmp_path)
    guard = GitGuard([folder.workspace], find_git_paths([folder.workspace]).stores, (), folder.home)
    guard.learn()
    folder.run(script)
    assert guard.check(is_deep=True)
    folder.run(f"git {used}", used_in)
    assert not folder.ran.exists()


def test_without_the_guard_git_runs_all_of_them(tmp_path: Path) -> None:
    quiet = []
    for number, (name, (script, used_in, used)) in enumerate(PLANTS.items()):
        folder = Folder(tmp_path / str(number))
        folder.run(script)
        folder.run(f"git {used}", used_in)
        quiet += [] if folder.ran.exists() else [name]
    assert quiet == [], quiet


def test_everything_the_configuration_of_the_user_names_is_mounted_read_only(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    found = find_git_paths([folder.workspace], folder.home)
    protected = {str(path.relative_to(folder.workspace)) for path in found.protected}
    assert {"dotfiles/own", "dotfiles/always", "shared.real", "linked.config", "team-hooks"} <= protected


def test_the_users_folder_of_hooks_is_the_one_that_git_uses(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("[core]\n\thooksPath = .shared\n")
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = .old\n[include]\n\tpath = ~/more\n")
    assert hooks_folder_of_user(tmp_path) == ".shared"
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = .old\n\thooksPath = .new/\n")
    assert hooks_folder_of_user(tmp_path) == ".new"
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = ~/hooks\n")
    assert hooks_folder_of_user(tmp_path) == ""


def test_a_configuration_may_name_the_home_folder_of_a_user(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid())
    config = tmp_path / "config"
    config.write_text(f"[include]\n\tpath = ~{me.pw_name}/shared\n[core]\n\thooksPath = ~{me.pw_name}/hooks\n")
    home = Path(os.path.realpath(me.pw_dir))
    assert list(included_paths(config, tmp_path / "home", None)) == [home / "shared", home / "hooks"]


def test_what_replaces_a_cleaned_file_at_once_is_cleaned_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    guard = GitGuard([folder.workspace], find_git_paths([folder.workspace]).stores, (), folder.home)
    guard.learn()
    plant = "cp $EVIL new/.git/hooks/post-commit"
    folder.run(f"git init -q new && {plant}")
    clean = GitGuard._clean

    def clean_and_plant(self: GitGuard, root: Path, path: Path) -> Iterator[str]:
        yield from clean(self, root, path)
        folder.run(plant)

    with monkeypatch.context() as patched:
        patched.setattr(GitGuard, "_clean", clean_and_plant)
        assert guard.check(is_deep=True)
    assert guard.check(is_deep=True)
    assert not (folder.workspace / "new/.git/hooks/post-commit").exists()
