"""What a command leaves for git in an unusual form is taken back; without that, real git runs all of it."""

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.git.guard import GitGuard
from agent.backends.sandbox.git.index_entries import leads_outside
from agent.backends.sandbox.git.named_paths import read_names, resolve_steps
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


def test_a_folder_that_a_configuration_names_for_hooks_is_known_even_if_it_takes_no_effect(tmp_path: Path) -> None:
    config, home = tmp_path / "config", tmp_path / "home"
    (tmp_path / "more").write_text("[core]\n\thooksPath = .shared\n")
    config.write_text(
        "[core]\n\thooksPath = .old\n\thooksPath = .new/\n[include]\n\tpath = more\n"
        '[includeIf "gitdir:/nowhere/"]\n\tpath = inactive\n'
    )
    (tmp_path / "inactive").write_text("[core]\n\thooksPath = ~/hooks\n")
    named = read_names([config], home)
    assert set(named.hooks) == {".old", ".new", ".shared", str(home / "hooks")}
    assert set(named.configs) == {tmp_path / "more", tmp_path / "inactive"}


def test_what_a_linked_configuration_includes_is_relative_to_the_link_as_for_git(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "own").write_text("[include]\n\tpath = more\n")
    (tmp_path / ".gitconfig").symlink_to("dotfiles/own")
    assert read_names([tmp_path / ".gitconfig"], tmp_path).configs == (tmp_path / "more",)


def test_a_configuration_may_name_the_home_folder_of_a_user(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid())
    config = tmp_path / "config"
    config.write_text(f"[include]\n\tpath = ~{me.pw_name}/shared\n[core]\n\thooksPath = ~{me.pw_name}/hooks\n")
    named, home = read_names([config], tmp_path / "home"), Path(me.pw_dir)
    assert (named.configs, named.hooks) == ((home / "shared",), (str(home / "hooks"),))


def test_every_link_on_the_way_to_a_path_is_known(tmp_path: Path) -> None:
    tmp_path = Path(os.path.realpath(tmp_path))
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "folder").symlink_to("other")
    (tmp_path / "other").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "file").symlink_to("inner/../missing")
    steps = list(resolve_steps(tmp_path / "folder" / "inner" / ".." / "file"))
    assert steps == [tmp_path / "folder", tmp_path / "other", tmp_path / "real/file", tmp_path / "real/missing"]


def test_a_repository_at_a_path_that_is_too_long_for_the_system_is_cleaned(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    guard = _guard(folder)
    folder.run(
        """
        for n in {1..50}; do mkdir $(printf %0200d $n) && cd $(printf %0200d $n); done
        mkdir -p .git/objects .git/refs .git/hooks && echo ref: refs/heads/main > .git/HEAD
        config > .git/config && cp $EVIL .git/hooks/post-commit
        """
    )
    assert guard.check(is_deep=True)
    assert guard.is_complete
    inner = "; ".join(f"cd {number:0200d}" for number in range(1, 51))
    folder.run(f"{inner}; cat .git/config > $EVIL.config; ls .git/hooks >> $EVIL.config")
    assert folder.evil.with_name("evil.sh.config").read_text() == (
        '[core]\n\trepositoryformatversion = "0"\n[core]\n\tbare = "false"\npost-commit.blocked\n'
    )


def test_hooks_and_links_of_the_user_get_their_content_and_permissions_back(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.run("echo 'echo 1' > .git/hooks/pre-commit && ln -s ../../shared.real .git/hooks/post-merge")
    (folder.workspace / ".git/hooks/pre-commit").chmod(0o640)
    guard = _guard(folder)
    folder.run("cd .git/hooks && cp $EVIL pre-commit && chmod 755 pre-commit && ln -sf $EVIL post-merge")
    assert len(guard.check(is_deep=True)) == 2
    hooks = folder.workspace / ".git/hooks"
    assert (hooks / "pre-commit").read_text() == "echo 1\n"
    assert stat.S_IMODE((hooks / "pre-commit").stat().st_mode) == 0o640
    assert (hooks / "post-merge").readlink() == Path("../../shared.real")


def test_a_worktree_that_the_user_adds_during_a_run_keeps_its_hooks(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.run("git init -q $PWD/../main && cd ../main && git config core.hooksPath .husky && mkdir .husky")
    folder.run("echo true > .husky/pre-commit && git add -A && git commit -qm x", "../main")
    folder.run("git worktree add -q $PWD/../ws/t1", "../main")
    guard = _guard(folder)
    folder.run("git worktree add -q $PWD/../ws/t2", "../main")
    folder.run("cd t2/.husky && cp $EVIL post-commit")
    assert guard.check(is_deep=True) == ["t2/.husky/post-commit: new hook, renamed to post-commit.blocked"]
    folder.run("echo evil > t2/.husky/pre-commit")
    assert guard.check(is_deep=True) == ["t2/.husky/pre-commit: restored"]
    assert (folder.workspace / "t2/.husky/pre-commit").read_text() == "true\n"


def test_an_index_that_hides_paths_is_recognized(tmp_path: Path) -> None:
    index = tmp_path / "index"
    table = b"IEOT" + (12).to_bytes(4, "big") + (1).to_bytes(4, "big")
    end = 12 + len(_entry(b"a"))
    table += end.to_bytes(4, "big") + (1).to_bytes(4, "big")
    eoie = b"EOIE" + (24).to_bytes(4, "big")
    found = {}
    for name, data in {
        "plain": _index(_entry(b"a"), b""),
        "with names like it": _index(_entry(b"x.git/..a/.github/git"), b""),
        "hook": _index(_entry(b".GIT/hooks/x"), b""),
        "above": _index(_entry(b"a/../../x"), b""),
        "absolute": _index(_entry(b"/x"), b""),
        "zero byte": _index(_entry(b".git/x\0a"), b""),
        "cut off": _index(_entry(b"a"), b"")[:60],
        "other places": _index(_entry(b"a"), table + eoie + end.to_bytes(4, "big") + bytes(20)),
        "elsewhere": _index(_entry(b"a"), eoie + (99).to_bytes(4, "big") + bytes(20)),
        "no index": b"nothing",
    }.items():
        index.write_bytes(data)
        found[name] = leads_outside(index)
    assert [name for name, is_bad in found.items() if not is_bad] == ["plain", "with names like it", "no index"]


def test_a_link_that_cannot_be_read_does_not_end_the_search(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    guard = _guard(folder)
    folder.run(
        """
        for n in {0..99}; do git init -q new$n; ln -s /proc/self/fd/$n new$n/.githooks; done
        for n in {1..50}; do mkdir $(printf %0200d $n) && cd $(printf %0200d $n); done
        """
    )
    folder.run("git init -q new && config > new/.git/config")
    assert "new/.git/config: removed core.fsmonitor" in guard.check(is_deep=True)


def _entry(path: bytes) -> bytes:
    entry = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(32) + len(path).to_bytes(2, "big") + path + b"\0"
    return entry + bytes(-len(entry) % 8)


def _index(entry: bytes, extensions: bytes) -> bytes:
    return b"DIRC" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry + extensions + bytes(20)


def _guard(folder: Folder) -> GitGuard:
    guard = GitGuard([folder.workspace], find_git_paths([folder.workspace]).stores, (), folder.home)
    guard.learn()
    return guard


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
