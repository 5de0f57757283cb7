"""Code that a command plants for git never runs when the user works in the folder afterwards, outside the sandbox."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.git import guard, repositories
from agent.backends.sandbox.runner import SandboxCommandRunner
from tests.agent.backends.backend_cases import BuildRunner, list_names
from tests.programs import needs
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tooling.contract.command import CommandRequest

pytestmark = [pytest.mark.slow, needs("git")]

_CONFIG = r"""config() { printf "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = $EVIL\n"; }"""
_TEXT = Path(__file__).with_name("git_plants.txt").read_text()
PLANTS = {
    name: f"{_CONFIG}\n{script}" for name, script in re.findall(r"^== (.+)\n((?:(?!== ).*\n)+)", _TEXT, re.MULTILINE)
}
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null"}
_USER = {"GIT_AUTHOR_NAME": "u", "GIT_AUTHOR_EMAIL": "u@x", "GIT_COMMITTER_NAME": "u", "GIT_COMMITTER_EMAIL": "u@x"}


# What a user and her editor do in every folder; the last two also without her own settings.
USED = (
    "status",
    "-c core.pager= log --oneline",
    "st",
    "diff HEAD",
    "add -A",
    "rebase --continue",
    "push origin",
    "commit -q --allow-empty -m x",
)


class Checkout:
    """A workspace with repositories of every kind, and a linked worktree outside of it."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.outside, self.home = folder / "ws", folder / "outside", folder / "home"
        self.evil = self.workspace / "evil.sh"
        self.ran = self.outside / "ran"

    def build(self) -> None:
        for path in (self.workspace, self.outside, self.home):
            path.mkdir(parents=True)
        self.evil.write_text(f"#!/bin/sh\ntouch {self.ran}\n")
        self.evil.chmod(0o755)
        self._git(
            "init -q -b main .",
            "config extensions.worktreeConfig true",
            "commit -q --allow-empty -m x",
            f"worktree add -q {self.outside / 'linked'}",
        )
        self._git("init -q wtc", "-C wtc config extensions.worktreeConfig true")
        self._git("init -q --separate-git-dir=real linked", "init -q --separate-git-dir=store pointing")
        (self.workspace / "linked" / ".git").unlink()
        (self.workspace / "linked" / ".git").symlink_to("../real")
        self._submodules()
        self._git("init -q hooked", "-C hooked config core.hooksPath .husky")
        (self.workspace / "hooked" / ".husky").mkdir()
        (self.workspace / "shared.gitconfig").write_text("")
        self._git("init -q including", "-C including config include.path ../../shared.gitconfig")
        (self.workspace / "homely.gitconfig").write_text("")
        self._git("init -q homely", "-C homely config include.path ~/ws/homely.gitconfig")
        (self.home / "ws").symlink_to(self.workspace)
        # The user keeps hooks in a folder of each repository.
        (self.home / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
        self._git("init -q hooked-by-user")
        (self.workspace / "hooked-by-user" / ".githooks").mkdir()

    def _submodules(self) -> None:
        for name in ("two", "one"):
            self._git(f"init -q {self.outside / name}", f"-C {self.outside / name} commit -q --allow-empty -m x")
        allowed = "-c protocol.file.allow=always submodule --quiet add"
        self._git(
            f"-C {self.outside / 'one'} {allowed} --name two ../two two", f"-C {self.outside / 'one'} commit -qm sub"
        )
        self._git(f"{allowed} --name libs/one {self.outside / 'one'} sub")
        self._git("-c protocol.file.allow=always submodule --quiet update --init --recursive", "commit -qm sub")

    def _git(self, *lines: str) -> None:
        for line in lines:
            subprocess.run(
                ["git", *line.split()], cwd=self.workspace, env=self._environ(), check=True, capture_output=True
            )

    def _environ(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), **_USER}

    def use_git(self) -> None:
        """Do what a user and her editor do in every folder, look and commit, until planted code runs."""
        folders = [path.parent for path in self.workspace.rglob(".git")] + [
            self.outside / "linked",
            self.workspace / "bare",
        ]
        for folder in (self.workspace, *folders):
            for line, more in (*((line, {}) for line in USED), *((line, _NO_SETTINGS) for line in USED[-2:])):
                if folder.is_dir() and not self.ran.exists():
                    subprocess.run(
                        ["git", *line.split()],
                        cwd=folder,
                        env={**self._environ(), **more},
                        capture_output=True,
                        timeout=120,
                        check=False,
                    )


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout that was built once and moved aside; git stores its first place in many files."""
    folder = tmp_path_factory.mktemp("planting")
    Checkout(folder / "used").build()
    return (folder / "used").rename(folder / "pristine")


@pytest.fixture
def checkout(pristine: Path) -> Iterator[Checkout]:
    """Return a copy, in the place where the checkout was built."""
    used = pristine.with_name("used")
    shutil.copytree(pristine, used, symlinks=True)
    yield Checkout(used)
    shutil.rmtree(used)


async def plant(runner: SandboxCommandRunner, checkout: Checkout, script: str) -> None:
    request = CommandRequest(
        argv=("bash", "-c", script), cwd=checkout.workspace, timeout_s=20, env={"EVIL": str(checkout.evil), **_USER}
    )
    await runner.run(request)
    await runner.stop()


@pytest.mark.parametrize("sandbox", [pytest.param("bubblewrap", marks=needs("bwrap")), "landlock"])
@pytest.mark.parametrize("name", PLANTS)
async def test_what_a_command_plants_for_git_does_not_run(
    name: str, sandbox: str, checkout: Checkout, build_runner: BuildRunner
) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(checkout.home)}
    await plant(build_runner(checkout.workspace, sandbox, environ=environ), checkout, PLANTS[name])
    checkout.use_git()
    assert not checkout.ran.exists(), name


@pytest.mark.parametrize("name", [name for name in PLANTS if name != "new repository in a hurry"])
def test_without_a_sandbox_it_runs(name: str, checkout: Checkout) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(checkout.home), "EVIL": str(checkout.evil), **_USER}
    subprocess.run(["bash", "-c", PLANTS[name]], cwd=checkout.workspace, env=environ, capture_output=True, check=False)
    checkout.use_git()
    assert checkout.ran.exists(), name


_CLOSED = """
for name in top parent/inner store hooks written; do git init -q $name; done
for name in top parent/inner store written; do config > $name/.git/config; done
cp $EVIL hooks/.git/hooks/post-commit
chmod 111 top parent store/.git hooks/.git/hooks
chmod 555 written written/.git
"""


@needs("bwrap")
@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_a_folder_that_a_command_has_closed_hides_nothing_from_us() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        workspace, evil = folder / "ws", folder / "ws" / "evil.sh"
        for path in (workspace, folder / "marks"):
            path.mkdir()
            os.chown(path, NOBODY, NOBODY)
        ran = folder / "marks" / "ran"
        evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
        evil.chmod(0o755)
        environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **_USER}
        script = f"EVIL={evil}\n{_CONFIG}\n{_CLOSED}"
        run_as_nobody(script, workspace=workspace, environ=environ, copy=folder / "copy")
        for used in ("top", "parent/inner", "store", "hooks", "written"):
            for line in ("git status", "git commit -q --allow-empty -m x"):
                subprocess.run(
                    line.split(),
                    cwd=workspace / used,
                    env=environ,
                    user=NOBODY,
                    group=NOBODY,
                    extra_groups=[],
                    check=False,
                )
            assert not ran.exists(), used


@needs("bwrap")
async def test_thousands_of_nested_repositories_do_not_stop_the_sandbox(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    for name in range(3000):
        store = tmp_path / "ws" / f"d{name % 60}" / f"r{name}" / ".git"
        (store / "hooks").mkdir(parents=True)
        (store / "config").touch()
    runner = build_runner(tmp_path / "ws", "bubblewrap")
    for _ in range(2):
        ended = await runner.run(CommandRequest(argv=("echo", "on"), cwd=tmp_path / "ws", timeout_s=60))
        assert ended.output == b"on\n"
        runner.protect_new_repositories()


@needs("bwrap")
async def test_very_long_paths_do_not_stop_the_sandbox(tmp_path: Path, build_runner: BuildRunner) -> None:
    for name in range(190):
        store = tmp_path / "ws" / ("d" * 250) / ("e" * 250) / (f"{name}-" + "f" * 240) / ".git"
        (store / "hooks").mkdir(parents=True)
        for part in range(8):
            module = store / "modules" / ("m" * 250) / ("n" * 250) / f"{part}"
            for inner in ("HEAD", "objects", "refs", "hooks"):
                (module / inner).mkdir(parents=True)
        (store / "config").touch()
    runner = build_runner(tmp_path / "ws", "bubblewrap")
    ended = await runner.run(CommandRequest(argv=("echo", "on"), cwd=tmp_path / "ws", timeout_s=60))
    assert ended.output == b"on\n"


@needs("bwrap", "git")
async def test_repositories_beyond_the_number_of_mounts_are_cleaned_when_a_command_has_moved_them(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    workspace = tmp_path / "ws"
    for name in range(190):
        for part in range(8):
            module = workspace / f"r{name}" / ".git" / "modules" / f"a{part}" / "b"
            (module / "hooks").mkdir(parents=True)
            for inner in ("HEAD", "objects", "refs"):
                (module / inner).mkdir()
            (module / "config").touch()
    runner = build_runner(workspace, "bubblewrap")
    script = (
        "for r in r*; do mv $r old; mkdir -p $r/.git/modules/a0/b; cp -r old/.git/modules/a0/b $r/.git/modules/a0; "
    )
    plant = "echo '[core] fsmonitor = evil' > $r/.git/modules/a0/b/config; rm -rf old; done 2>/dev/null"
    await runner.run(CommandRequest(argv=("bash", "-c", script + plant), cwd=workspace, timeout_s=100))
    await runner.stop()
    configs = [path.read_text() for path in workspace.glob("r*/.git/modules/a0/b/config")]
    assert len(configs) == 190
    assert not any("evil" in text for text in configs)


@needs("bwrap")
async def test_a_workspace_in_var_tmp_works(build_runner: BuildRunner) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="wl-") as folder:
        runner = build_runner(Path(folder), "bubblewrap")
        ended = await runner.run(CommandRequest(argv=("touch", "a"), cwd=Path(folder), timeout_s=20))
        assert (ended.exit_code, (Path(folder) / "a").exists()) == (0, True), ended


@pytest.mark.parametrize("sandbox", [pytest.param("bubblewrap", marks=needs("bwrap")), "landlock"])
async def test_what_the_user_has_set_in_a_repository_far_below_stays(
    sandbox: str, tmp_path: Path, build_runner: BuildRunner
) -> None:
    store = tmp_path / "ws" / "a" / "b" / "c" / "d" / "e" / ".git"
    for part in ("HEAD", "objects", "refs", "hooks"):
        (store / part).mkdir(parents=True)
    (store / "config").write_text("[alias]\n\tst = status\n")
    (store / "hooks" / "pre-commit").write_text("mine")
    runner = build_runner(tmp_path / "ws", sandbox)
    script = "echo evil > a/b/c/d/e/.git/hooks/post-merge; mkdir -p a/b/c/d/f; touch a/b/c/d/x"
    await runner.run(CommandRequest(argv=("bash", "-c", script), cwd=tmp_path / "ws", timeout_s=60))
    await runner.stop()
    assert (store / "config").read_text() == "[alias]\n\tst = status\n"
    assert list_names(store / "hooks") == ["post-merge.blocked", "pre-commit"]


async def test_what_was_there_stays_even_if_there_are_too_many_folders_to_look_at(
    tmp_path: Path, build_runner: BuildRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "_MAX_FOLDERS_BEFORE", 4)
    store = tmp_path / "ws" / "a" / "b" / "c" / "d" / "e" / ".git"
    for part in ("HEAD", "objects", "refs", "hooks"):
        (store / part).mkdir(parents=True)
    (store / "hooks" / "pre-commit").write_text("mine")
    os.utime(store / "hooks" / "pre-commit", (0, 0))
    runner = build_runner(tmp_path / "ws")
    monkeypatch.setattr(guard, "_CLOCK_NS", -(10**9))
    await runner.run(CommandRequest(argv=("true",), cwd=tmp_path / "ws", timeout_s=60))
    await runner.stop()
    assert list_names(store / "hooks") == ["pre-commit"]


async def test_a_command_cannot_hide_a_repository_behind_many_folders(
    tmp_path: Path, build_runner: BuildRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repositories, "_MAX_FOLDERS_BEFORE", 10)
    runner = build_runner(tmp_path)
    script = "mkdir -p {1..300}/x; git init -q 150/x/z; echo '[core] fsmonitor = evil' >> 150/x/z/.git/config"
    await runner.run(CommandRequest(argv=("bash", "-c", script), cwd=tmp_path, timeout_s=60))
    await runner.stop()
    assert "evil" not in (tmp_path / "150/x/z/.git/config").read_text()
