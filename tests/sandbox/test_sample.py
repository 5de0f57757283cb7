"""Everyday work goes on inside the box: git, make, gcc, pytest, node on a small project."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner, build_sandbox_runner
from tests.agent.backends.backend_cases import list_names
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parent / "sample"
PROGRAMS = ("git", "make", "gcc", "node", "bwrap")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[SandboxCommandRunner]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert missing == []
    workspace, home = tmp_path / "ws", tmp_path / "home"
    shutil.copytree(SAMPLE, workspace)
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    runner = build_sandbox_runner(workspace=workspace, environ={"PATH": path, "HOME": str(home)})
    yield runner
    runner.close()


async def sh(runner: SandboxCommandRunner, command: str) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=60))


async def test_the_project_is_built_and_checked(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "make check && make clean")
    assert found.exit_code == 0, found.output.decode()
    assert b"3 passed" in found.output
    assert b"node: 7 words" in found.output


async def test_a_repository_is_made_changed_and_read(runner: SandboxCommandRunner) -> None:
    work = "git init -q . && git add -A && git commit -qm first && echo x >> words.txt && git diff --stat"
    first = await sh(runner, work)
    assert first.exit_code == 0, first.output.decode()
    workspace = runner.sandbox.policy.writable[0]
    again = build_sandbox_runner(workspace=workspace, environ=dict(runner.sandbox.policy.environment))
    protected = await sh(
        again, "git commit -qam second && git log --format=%an:%s && git checkout -qb topic && git stash list"
    )
    assert (protected.exit_code, protected.output) == (0, b"Ada:second\nAda:first\n")
    refused = await sh(again, "echo evil > .git/hooks/post-commit")
    assert refused.exit_code != 0


async def test_a_virtual_environment_can_be_made_and_used(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "python -m venv --without-pip env && env/bin/python -c 'import ssl, sqlite3; print(1)'")
    assert (found.exit_code, found.output) == (0, b"1\n")


async def test_nothing_but_the_work_is_left(runner: SandboxCommandRunner, tmp_path: Path) -> None:
    await sh(runner, "touch ~/a /tmp/b made; mkdir -p ../other; touch ../other/c")
    assert list_names(tmp_path) == ["home", "ws"]
    assert list_names(tmp_path / "home") == [".gitconfig"]
    assert "made" in list_names(tmp_path / "ws")
