"""Code that a command plants for git does not run either if the user's own settings or later commands lead to it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.agent.backends.backend_cases import BuildRunner
from tests.programs import needs
from tooling.contract.command import CommandRequest

pytestmark = [pytest.mark.slow, needs("git")]

_SHELL = r"""
config() { printf "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = $EVIL\n"; }
store() {
    mkdir -p $1/objects $1/refs
    : > $1/objects/.keep && : > $1/refs/.keep
    echo ref: refs/heads/main > $1/HEAD
    config > $1/config
}
submodule() {
    git init -q $OUT/one
    git -C $OUT/one commit -q --allow-empty -m x
    git init -q
    git -c protocol.file.allow=always submodule --quiet add $OUT/one sub
    git commit -qm sub
}
index() {
    python3 $INDEX "$1" "$2" "$(git hash-object -w $EVIL)" .git/index
}
"""
# Writes an index with one file, which git itself would refuse to add.
_INDEX = """
import hashlib, sys
version, path, blob, target = int(sys.argv[1]), sys.argv[2].encode(), bytes.fromhex(sys.argv[3]), sys.argv[4]
entry = bytes(24) + (0o100755).to_bytes(4, "big") + bytes(12) + blob + len(path).to_bytes(2, "big")
entry += (b"\\0" if version == 4 else b"") + path + b"\\0"
entry += b"" if version == 4 else bytes(-len(entry) % 8)
data = b"DIRC" + version.to_bytes(4, "big") + (1).to_bytes(4, "big") + entry
open(target, "wb").write(data + hashlib.sha1(data).digest())
"""
_USER = {"GIT_AUTHOR_NAME": "u", "GIT_AUTHOR_EMAIL": "u@x", "GIT_COMMITTER_NAME": "u", "GIT_COMMITTER_EMAIL": "u@x"}
_TEXT = Path(__file__).with_name("git_uses.txt").read_text()
# Name → the three scripts.
USES = {
    text.partition("\n")[0]: re.split(r"^-- \w+\n", text, flags=re.MULTILINE)[1:]
    for text in re.split(r"^== ", _TEXT, flags=re.MULTILINE)[1:]
}


class Desk:
    """A workspace, a home folder and a folder beside them."""

    def __init__(self, folder: Path) -> None:
        folder = Path(os.path.realpath(folder))
        self.workspace, self.outside, self.home = folder / "ws", folder / "outside", folder / "home"
        self.ran = self.outside / "ran"
        for path in (self.workspace, self.outside, self.home):
            path.mkdir(parents=True)
        evil = self.workspace / "evil.sh"
        evil.write_text(f"#!/bin/sh\ntouch {self.ran}\n")
        evil.chmod(0o755)
        (self.workspace / "index.py").write_text(_INDEX)
        self.names = {
            "WS": str(self.workspace),
            "OUT": str(self.outside),
            "EVIL": str(evil),
            "INDEX": str(self.workspace / "index.py"),
            **_USER,
        }

    def run(self, script: str) -> None:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), **self.names}
        command = ["bash", "-c", f"{_SHELL}\n{script}"]
        subprocess.run(command, cwd=self.workspace, env=environ, capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize("sandbox", [pytest.param("bubblewrap", marks=needs("bwrap")), "landlock"])
@pytest.mark.parametrize("name", USES)
async def test_what_a_command_plants_does_not_run_in_a_later_use(
    name: str, sandbox: str, tmp_path: Path, build_runner: BuildRunner
) -> None:
    before, plant, after = USES[name]
    desk = Desk(tmp_path)
    desk.run(before)
    environ = {"PATH": os.environ["PATH"], "HOME": str(desk.home)}
    runner = build_runner(desk.workspace, sandbox, environ=environ)
    request = CommandRequest(
        argv=("bash", "-c", f"HOME={desk.home}\n{_SHELL}\n{plant}"), cwd=desk.workspace, timeout_s=60, env=desk.names
    )
    await runner.run(request)
    await runner.stop()
    desk.run(after)
    assert not desk.ran.exists(), name


@pytest.mark.parametrize("name", USES)
def test_without_a_sandbox_it_runs_in_a_later_use(name: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for script in USES[name]:
        desk.run(script)
    assert desk.ran.exists(), name


_WORK = r"""
git init -q -b main new && cd new
echo 1 > a && git add a && git commit -qm a && git branch side && git tag v1
echo 2 > a && git commit -qam b && git checkout -q side && echo 3 > b && git add b && git commit -qm c
git rebase -q main && git checkout -q main && git merge -q --no-ff -m merged side
git revert --no-edit HEAD~1 > /dev/null
echo 4 > a && git stash -q && git stash pop -q && git commit -qam d && git gc -q && git pack-refs --all
git update-index --index-version 4 && git update-index --split-index && git checkout -q v1 && git checkout -q main
git worktree add -q ../tree side && git worktree add -q ../moved -b other && git worktree move ../moved ../there
git remote add origin ../bare && cd .. && git clone -q --bare new bare && git -C new push -q origin main
git clone -q new clone && git -C clone pull -q && git -C clone submodule --quiet init
git -C clone -c protocol.file.allow=always submodule --quiet add ../bare lib/sub && git -C clone commit -qm sub
git -C clone/lib/sub checkout -q -b topic && git -C clone -c protocol.file.allow=always submodule --quiet update
git -C repo worktree add -q ../second && git -C repo commit -q --allow-empty -m x
git -C linked commit -q --allow-empty -m x && git -C bare2 worktree add -q ../from-bare
"""


@pytest.mark.parametrize("sandbox", [pytest.param("bubblewrap", marks=needs("bwrap")), "landlock"])
async def test_ordinary_work_with_git_is_left_alone(sandbox: str, tmp_path: Path, build_runner: BuildRunner) -> None:
    desk = Desk(tmp_path)
    desk.run("""
        git init -q repo && cd repo && git config core.hooksPath .husky && mkdir .husky
        printf '#!/bin/sh\\n' > .husky/pre-commit && chmod +x .husky/pre-commit && git add .husky && git commit -qm x
        cd .. && git init -q --separate-git-dir=real linked && rm linked/.git && ln -s ../real linked/.git
        git clone -q --bare repo bare2
    """)
    said: list[str] = []
    environ = {"PATH": os.environ["PATH"], "HOME": str(desk.home)}
    runner = build_runner(desk.workspace, sandbox, environ=environ, on_planted=said.append)
    request = CommandRequest(argv=("bash", "-ec", _WORK), cwd=desk.workspace, timeout_s=100, env=desk.names)
    ended = await runner.run(request)
    await runner.stop()
    assert (ended.output, ended.exit_code, said) == (b"", 0, [])
    desk.run("git -C second commit --allow-empty -m x && git -C tree log && git -C from-bare status && touch $OUT/ran")
    assert desk.ran.exists()
