"""Ways around the sandbox that are not probes: its loader, its mounted paths, the death of its owner."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.backends.sandbox.bubblewrap.world_sandbox import BECAME_A_LINK, refresh_policy
from agent.backends.sandbox.runner import SandboxCommandRunner
from tests.agent.backends.backend_cases import ENVIRON, MARK, BuildRunner, find_processes, list_names, wait_for_file
from tests.programs import needs, require
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HANG_S = 30
LONG_RUN = """
import asyncio, os, sys
from dataclasses import replace
from pathlib import Path
from agent.backends.sandbox.runner import build_sandbox_runner
from tooling.contract.command import CommandRequest
workspace = Path(sys.argv[1])
runner = build_sandbox_runner(workspace=workspace, environ=os.environ)
words = ("bash", "-c", "setsid sleep {0} & touch started; sleep {0}".format(sys.argv[2]))
asyncio.run(runner.run(CommandRequest(argv=words, cwd=workspace, timeout_s=60)))
"""


async def sh(runner: SandboxCommandRunner, command: str, **env: str) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=20, env=env))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    require("git")
    workspace = tmp_path / "ws"
    subprocess.run(["git", "init", "-q", workspace], check=True, env={"PATH": os.environ["PATH"], "HOME": "/"})
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("bait")
    return workspace


@needs("gcc")
async def test_the_sandbox_does_not_load_a_library_that_a_command_built(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "evil.c").write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void f(void) "
        f'{{ FILE *x = fopen("{outside}/escaped", "w"); if (x) fclose(x); }}\n'
    )
    runner = build_runner(workspace)
    built = await sh(runner, "gcc -shared -fPIC -o libcap.so.2 evil.c && cp libcap.so.2 libselinux.so.1")
    assert built.exit_code == 0, built.output
    for name, value in (("LD_LIBRARY_PATH", str(workspace)), ("LD_PRELOAD", str(workspace / "libcap.so.2"))):
        found = await sh(runner, f"echo ${name}", **{name: value})
        assert found.output.decode().strip().endswith(value)
    assert list_names(outside) == []


@needs("bwrap")
async def test_a_planted_link_is_not_followed(repository: Path, tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(repository)
    planted = await sh(runner, "rm -rf .git; mv .git x; ln -sfn ../secret .git/hooks; ls .git/hooks")
    assert b"key" not in planted.output
    # Only the user can do this, outside the sandbox.
    shutil.rmtree(repository / ".git" / "hooks")
    (repository / ".git" / "hooks").symlink_to(tmp_path / "secret")
    with pytest.raises(PermissionError, match=BECAME_A_LINK):
        await sh(runner, "cat .git/hooks/key")
    later = build_runner(repository)
    assert b"bait" not in (await sh(later, "cat .git/hooks/key")).output


async def test_commands_still_run_after_the_user_removed_the_repository(
    repository: Path, build_runner: BuildRunner
) -> None:
    runner = build_runner(repository)
    shutil.rmtree(repository / ".git")
    assert refresh_policy(runner.sandbox.policy).protected == ()
    assert (await sh(runner, "echo on")).output == b"on\n"


@needs("bwrap")
async def test_secrets_in_a_home_folder_that_is_the_workspace_are_hidden(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("bait")
    (tmp_path / ".netrc").write_text("bait")
    (tmp_path / ".config" / "gh").mkdir(parents=True)
    (tmp_path / ".config" / "gh" / "hosts.yml").write_text("bait")
    (tmp_path / "project").mkdir()
    runner = build_runner(tmp_path, environ={**ENVIRON, "HOME": str(tmp_path)})
    await sh(runner, "mv .ssh s; mv .config c; rm -rf .ssh .config; mv .netrc n; umount .ssh; cp -r .ssh s2")
    found = await sh(runner, "cat .ssh/* .netrc .config/gh/* s/* c/gh/* n s2/*; grep -r bait . ; touch project/works")
    assert b"bait" not in found.output
    assert (tmp_path / ".ssh" / "id").read_text() == "bait"
    assert list_names(tmp_path / "project") == ["works"]


def test_commands_are_killed_with_the_agent(tmp_path: Path) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", LONG_RUN, tmp_path, MARK], cwd=ROOT, env={**ENVIRON, "PYTHONPATH": str(ROOT)}
    )
    try:
        asyncio.run(wait_for_file(tmp_path / "started"))
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    deadline = time.monotonic() + HANG_S
    while find_processes(MARK) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert find_processes(MARK) == []


@needs("git")
async def test_a_search_runs_the_program_of_the_system_and_does_not_look_at_repositories(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("ls", "planted"):
        text = "#!/bin/sh\necho planted; git init -q new; git -C new config alias.x '!evil'\n"
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    runner = build_runner(tmp_path, environ={**ENVIRON, "PATH": f"{tmp_path}/bin:{ENVIRON['PATH']}"})
    reads = CommandRequest(argv=("ls", "bin"), cwd=tmp_path, timeout_s=20, only_reads=True)
    assert (await runner.run(reads)).output == b"ls\nplanted\n"
    # One that the system does not have is a command like every other.
    assert (await runner.run(replace(reads, argv=("planted",)))).output == b"planted\n"
    await runner.stop()
    assert "evil" not in (tmp_path / "new/.git/config").read_text()
