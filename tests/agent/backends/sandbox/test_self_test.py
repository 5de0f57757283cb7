"""The self-test passes in real boxes, bites without one, and replaces only a box that does not start."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapBox
from agent.backends.sandbox.runner import SandboxCommandRunner
from agent.backends.sandbox.self_test import NAMES, BoxNotStarted, Probe, self_test, settle
from agent.backends.sandbox.types import Confinement, Description
from agent.vocabulary.errors import SandboxError
from agent.vocabulary.exit_codes import NO_SANDBOX
from tests.agent.backends.backend_cases import ENVIRON, MARK, names_in, sandbox_of, survivors
from tooling.contract.command import CommandRequest


class OpenBox:
    """A box that does not hold anything."""

    def __init__(self, confinement: Confinement) -> None:
        self.confinement = confinement

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        return HostProcess.start(request.argv, cwd=request.cwd, env=ENVIRON, sinks=sinks)

    def describe(self) -> Description:
        return Description(name="open", covered=(), not_covered=())

    def close(self) -> None:
        pass


@pytest.mark.parametrize("backend", ["sandbox", "landlock"])
async def test_a_real_box_holds_and_leaves_nothing(backend: str, tmp_path: Path) -> None:
    found = await self_test(sandbox_of(backend, tmp_path))
    assert found == tuple(Probe(name=name, held=True) for name in NAMES)
    assert names_in(tmp_path) == []


async def test_a_box_that_does_not_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"write-outside.*read-outside.*network.*see-processes") as caught:
        await self_test(SandboxCommandRunner(OpenBox(sandbox_of("sandbox", tmp_path).box.confinement)))
    assert caught.value.exit_code == NO_SANDBOX == 44
    assert "apt install bubblewrap" in caught.value.hint


FORBIDDEN = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"


def broken(tmp_path: Path, text: str = FORBIDDEN) -> SandboxCommandRunner:
    program = tmp_path / "bwrap"
    program.write_text(text)
    program.chmod(0o755)
    (tmp_path / "ws").mkdir()
    confinement = sandbox_of("sandbox", tmp_path / "ws").box.confinement
    return SandboxCommandRunner(BubblewrapBox(confinement, program=program, group_place=None))


async def test_a_box_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(BoxNotStarted, match="No permissions to create new namespace"):
        await self_test(broken(tmp_path))


async def test_a_program_that_only_calls_itself_bubblewrap_leaves_nobody(tmp_path: Path) -> None:
    runner = broken(tmp_path, f"#!/bin/bash\nsetsid sleep {MARK} </dev/null >/dev/null 2>&1 & sleep 0.2\n")
    with pytest.raises(BoxNotStarted, match="gave no reason"):
        await self_test(runner)
    assert survivors(MARK) == []


async def test_landlock_takes_over_where_bubblewrap_does_not_start_and_says_so(tmp_path: Path) -> None:
    runner = broken(tmp_path)
    probes, warning = await settle(runner)
    assert all(probe.held for probe in probes)
    assert runner.describe().name == "landlock"
    assert "No permissions to create new namespace" in warning
    assert ".git/hooks" in warning


async def test_a_box_that_holds_needs_no_other(tmp_path: Path) -> None:
    runner = sandbox_of("sandbox", tmp_path)
    _, warning = await settle(runner)
    assert (runner.describe().name, warning) == ("bubblewrap", "")


async def test_several_can_run_side_by_side(tmp_path: Path) -> None:
    runner = sandbox_of("sandbox", tmp_path)
    found = await asyncio.gather(*(self_test(runner) for _ in range(4)))
    assert all(probe.held for probes in found for probe in probes)
