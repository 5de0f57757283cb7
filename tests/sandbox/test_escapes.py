"""No escape succeeds in the sandbox, as root or as an ordinary user; nearly all do without it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner
from tests.agent.backends.backend_cases import BuildRunner
from tests.programs import needs
from tests.sandbox.escape_harness import EscapeHarness
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tests.sandbox.probes import ESCAPES
from tooling.contract.command import CommandRequest

pytestmark = pytest.mark.slow

# What Landlock and seccomp cannot prevent without namespaces, as the sandbox itself says.
LANDLOCK_LEAKS = {"write/mode", "write/time"}
# Only root has control groups, with which such a process is found.
LANDLOCK_LEAKS_OF_USERS = {*LANDLOCK_LEAKS, "survive/without-environment"}


async def run_escapes(runner: SandboxCommandRunner, harness: EscapeHarness) -> list[str]:
    request = CommandRequest(argv=("bash", "-c", harness.script()), cwd=harness.workspace, timeout_s=120)
    found = await runner.run(request)
    assert found.output.endswith(b"all tried\n"), found
    return harness.find_escapes(found.output)


def test_there_are_many_escapes_with_distinct_names() -> None:
    assert len(ESCAPES) >= 60
    assert len({escape.name for escape in ESCAPES}) == len(ESCAPES)


@needs("bwrap")
async def test_no_escape_succeeds_in_bubblewrap(build_runner: BuildRunner) -> None:
    with EscapeHarness() as harness:
        runner = build_runner(harness.workspace, "bubblewrap", environ=harness.environ)
        assert await run_escapes(runner, harness) == []


@pytest.mark.skipif(os.getuid() != 0, reason="is an ordinary user already")
@needs("bwrap")
def test_no_escape_of_an_ordinary_user_succeeds_in_bubblewrap() -> None:
    with EscapeHarness(owner=NOBODY) as harness:
        output = run_as_nobody(
            harness.script(), workspace=harness.workspace, environ=harness.environ, copy=harness.root / "sources"
        )
        assert output.endswith(b"all tried\n"), output
        assert harness.find_escapes(output) == []


async def test_only_documented_escapes_succeed_under_landlock(build_runner: BuildRunner) -> None:
    with EscapeHarness() as harness:
        runner = build_runner(harness.workspace, "landlock", environ=harness.environ)
        escaped = set(await run_escapes(runner, harness))
        assert {name for name in escaped if not name.startswith("git/")} <= LANDLOCK_LEAKS


async def test_what_landlock_says_that_commands_can_learn_they_can(build_runner: BuildRunner) -> None:
    with EscapeHarness() as harness:
        (harness.outside / "link").symlink_to("secret")
        runner = build_runner(harness.workspace, "landlock", environ=harness.environ)
        script = f"cd {harness.outside} && [ -e secret ] && stat -c %s secret && readlink link; cat secret; ls"
        request = CommandRequest(argv=("bash", "-c", script), cwd=harness.workspace, timeout_s=20)
        found = (await runner.run(request)).output.decode()
        assert found.splitlines()[:2] == ["5", "secret"]
        assert "bait" not in found
        assert any("its size and times" in gap for gap in runner.describe().not_covered)


@pytest.mark.skipif(os.getuid() != 0, reason="is an ordinary user already")
def test_only_documented_escapes_of_an_ordinary_user_succeed_under_landlock() -> None:
    with EscapeHarness(owner=NOBODY) as harness:
        output = run_as_nobody(
            harness.script(),
            workspace=harness.workspace,
            environ=harness.environ,
            copy=harness.root / "sources",
            sandbox="landlock",
        )
        assert output.endswith(b"all tried\n"), output
        escaped = harness.find_escapes(output)
        harness.kill_survivors()
        assert {name for name in escaped if not name.startswith("git/")} <= LANDLOCK_LEAKS_OF_USERS


@pytest.mark.skipif(os.getuid() != 0, reason="half of the escapes need root")
def test_nearly_all_escapes_succeed_on_plain_bash() -> None:
    with EscapeHarness() as harness:
        done = subprocess.run(
            ["bash", "-c", harness.script()],
            cwd=harness.workspace,
            env=harness.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            close_fds=False,
            timeout=120,
            check=False,
        )
        escaped = harness.find_escapes(done.stdout)
        harness.kill_survivors()
        missed = [escape.name for escape in ESCAPES if escape.name not in escaped]
        assert len(missed) <= len(ESCAPES) / 10, missed
        assert Path("/usr/.windlass-probe").exists() is False
