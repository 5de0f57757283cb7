"""The self-test passes in real boxes, bites without one, and replaces only a box that does not start."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.runner import SandboxCommandRunner
from agent.backends.sandbox.self_test import ESCAPE_NAMES, Probe, SandboxStartError, self_test, self_test_with_fallback
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy
from agent.vocabulary.errors import SandboxError
from agent.vocabulary.exit_codes import NO_SANDBOX
from tests.agent.backends.backend_cases import ENVIRON, MARK, find_survivors, list_names, make_sandbox_runner
from tooling.contract.command import CommandRequest


class LeakySandbox:
    """A box that does not hold anything."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        return HostProcess.start(request.argv, cwd=request.cwd, env=ENVIRON, sinks=sinks)

    def describe(self) -> SandboxDescription:
        return SandboxDescription(name="open", covered=(), not_covered=())

    def close(self) -> None:
        pass


@pytest.mark.parametrize("backend", ["sandbox", "landlock"])
async def test_a_real_box_holds_and_leaves_nothing(backend: str, tmp_path: Path) -> None:
    found = await self_test(make_sandbox_runner(backend, tmp_path))
    assert found == tuple(Probe(name=name, is_blocked=True) for name in ESCAPE_NAMES)
    assert list_names(tmp_path) == []


async def test_a_box_that_does_not_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"write-outside.*read-outside.*network.*see-processes") as caught:
        await self_test(SandboxCommandRunner(LeakySandbox(make_sandbox_runner("sandbox", tmp_path).sandbox.policy)))
    assert caught.value.exit_code == NO_SANDBOX == 44
    assert "apt install bubblewrap" in caught.value.hint


FORBIDDEN = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"


def broken_runner(tmp_path: Path, text: str = FORBIDDEN) -> SandboxCommandRunner:
    program = tmp_path / "bwrap"
    program.write_text(text)
    program.chmod(0o755)
    (tmp_path / "ws").mkdir()
    confinement = make_sandbox_runner("sandbox", tmp_path / "ws").sandbox.policy
    return SandboxCommandRunner(BubblewrapSandbox(confinement, program=program, group_place=None))


async def test_a_box_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(SandboxStartError, match="No permissions to create new namespace"):
        await self_test(broken_runner(tmp_path))


async def test_a_program_that_only_calls_itself_bubblewrap_leaves_nobody(tmp_path: Path) -> None:
    runner = broken_runner(tmp_path, f"#!/bin/bash\nsetsid sleep {MARK} </dev/null >/dev/null 2>&1 & sleep 0.2\n")
    with pytest.raises(SandboxStartError, match="gave no reason"):
        await self_test(runner)
    assert find_survivors(MARK) == []


async def test_landlock_takes_over_where_bubblewrap_does_not_start_and_says_so(tmp_path: Path) -> None:
    runner = broken_runner(tmp_path)
    probes, warning = await self_test_with_fallback(runner)
    assert all(probe.is_blocked for probe in probes)
    assert runner.describe().name == "landlock"
    assert "No permissions to create new namespace" in warning
    assert ".git/hooks" in warning


async def test_a_box_that_holds_needs_no_other(tmp_path: Path) -> None:
    runner = make_sandbox_runner("sandbox", tmp_path)
    _, warning = await self_test_with_fallback(runner)
    assert (runner.describe().name, warning) == ("bubblewrap", "")


async def test_several_can_run_side_by_side(tmp_path: Path) -> None:
    runner = make_sandbox_runner("sandbox", tmp_path)
    found = await asyncio.gather(*(self_test(runner) for _ in range(4)))
    assert all(probe.is_blocked for probes in found for probe in probes)
