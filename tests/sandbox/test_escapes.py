"""No escape succeeds in the box, as root or as an ordinary user; nearly all do without it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner, build_sandbox_runner
from tests.sandbox.escape_harness import EscapeHarness
from tests.sandbox.ordinary_user import NOBODY, run_as_nobody
from tests.sandbox.probes import ESCAPES
from tooling.contract.command import CommandRequest

pytestmark = pytest.mark.slow

# What Landlock and seccomp cannot cover without namespaces, as the box itself says.
LANDLOCK_LEAKS = {"write/mode", "write/time"}


async def run_escapes(runner: SandboxCommandRunner, arena: EscapeHarness) -> list[str]:
    request = CommandRequest(argv=("bash", "-c", arena.script()), cwd=arena.workspace, timeout_s=120)
    found = await runner.run(request)
    assert found.output.endswith(b"all tried\n"), found
    return arena.find_escapes(found.output)


def test_there_are_enough_of_them() -> None:
    assert len(ESCAPES) >= 60
    assert len({escape.name for escape in ESCAPES}) == len(ESCAPES)


async def test_nothing_escapes_the_box() -> None:
    with EscapeHarness() as arena:
        runner = build_sandbox_runner(workspace=arena.workspace, environ=arena.environ)
        assert await run_escapes(runner, arena) == []


@pytest.mark.skipif(os.getuid() != 0, reason="is an ordinary user already")
def test_nothing_escapes_the_box_of_an_ordinary_user() -> None:
    with EscapeHarness(owner=NOBODY) as arena:
        output = run_as_nobody(
            arena.script(), workspace=arena.workspace, environ=arena.environ, copy=arena.root / "sources"
        )
        assert output.endswith(b"all tried\n"), output
        assert arena.find_escapes(output) == []


async def test_what_escapes_landlock_is_what_it_says_aloud() -> None:
    with EscapeHarness() as arena:
        runner = build_sandbox_runner(workspace=arena.workspace, environ=arena.environ)
        runner.use_landlock()
        escaped = set(await run_escapes(runner, arena))
        assert {name for name in escaped if not name.startswith("git/")} <= LANDLOCK_LEAKS


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user cannot do half of it anyway")
def test_the_escapes_bite_on_plain_bash() -> None:
    with EscapeHarness() as arena:
        done = subprocess.run(
            ["bash", "-c", arena.script()],
            cwd=arena.workspace,
            env=arena.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            close_fds=False,
            timeout=120,
            check=False,
        )
        escaped = arena.find_escapes(done.stdout)
        arena.kill_survivors()
        missed = [escape.name for escape in ESCAPES if escape.name not in escaped]
        assert len(missed) <= len(ESCAPES) / 10, missed
        assert Path("/usr/.windlass-probe").exists() is False
