"""Everyday work in the sandbox: git, make, gcc, pytest and node on a small project."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner
from tests.agent.backends.backend_cases import SANDBOXES, BuildRunner, list_names
from tests.programs import needs
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = [pytest.mark.slow, needs("git", "make", "gcc", "node")]

SAMPLE = Path(__file__).parent / "sample"


@pytest.fixture(params=SANDBOXES)
def runner(request: pytest.FixtureRequest, tmp_path: Path, build_runner: BuildRunner) -> SandboxCommandRunner:
    workspace, home = tmp_path / "ws", tmp_path / "home"
    shutil.copytree(SAMPLE, workspace)
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return build_runner(workspace, request.param, environ={"PATH": path, "HOME": str(home)})


async def sh(runner: SandboxCommandRunner, command: str) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=60))


async def test_the_project_can_be_built_and_tested(runner: SandboxCommandRunner) -> None:
    # Landlock allows no sockets, not even on loopback.
    has_loopback = runner.describe().name == "bubblewrap"
    tests = "" if has_loopback else "-k 'not loopback'"
    found = await sh(runner, f'export PYTEST_ADDOPTS="{tests}"; make check && make clean')
    assert found.exit_code == 0, found.output.decode()
    assert (b"3 passed" if has_loopback else b"2 passed") in found.output
    assert b"node: 7 words" in found.output


async def test_a_repository_can_be_created_changed_and_read(
    runner: SandboxCommandRunner, tmp_path: Path, build_runner: BuildRunner
) -> None:
    work = "git init -q . && git add -A && git commit -qm first && echo x >> words.txt && git diff --stat"
    first = await sh(runner, work)
    assert first.exit_code == 0, first.output.decode()
    name = runner.describe().name
    second = build_runner(tmp_path / "ws", name, environ=dict(runner.sandbox.policy.environment))
    protected = await sh(
        second, "git commit -qam second && git log --format=%an:%s && git checkout -qb topic && git stash list"
    )
    assert (protected.exit_code, protected.output) == (0, b"Ada:second\nAda:first\n")
    changed = await sh(second, "echo evil > .git/hooks/post-commit")
    assert (changed.exit_code == 0) is (name == "landlock")


async def test_a_virtual_environment_can_be_created_and_used(runner: SandboxCommandRunner) -> None:
    found = await sh(runner, "python -m venv --without-pip env && env/bin/python -c 'import ssl, sqlite3; print(1)'")
    assert (found.exit_code, found.output) == (0, b"1\n")


async def test_only_files_in_the_workspace_remain(runner: SandboxCommandRunner, tmp_path: Path) -> None:
    await sh(runner, "touch ~/a /tmp/b created; mkdir -p ../other; touch ../other/c")
    assert list_names(tmp_path) == ["home", "ws"]
    assert list_names(tmp_path / "home") == [".gitconfig"]
    assert "created" in list_names(tmp_path / "ws")
