"""The self-test passes in real sandboxes, detects a leaky one, and replaces only one that cannot start."""

import asyncio
import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox import runner as runner_module
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.runner import (
    PROTECTS_LESS,
    SandboxCommandRunner,
    install_command,
    install_hint,
    missing_bubblewrap_warning,
)
from agent.backends.sandbox.self_test import ESCAPE_NAMES, Probe, SandboxStartError, self_test
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy
from agent.vocabulary.errors import SandboxError
from agent.vocabulary.exit_codes import NO_SANDBOX
from tests.agent.backends.backend_cases import (
    ENVIRON,
    MARK,
    SANDBOXES,
    BuildRunner,
    find_survivors,
    list_names,
)
from tooling.contract.command import CommandOutput, CommandRequest


class LeakySandbox:
    """A sandbox that confines nothing."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        return HostProcess.start(request.argv, cwd=request.cwd, env=ENVIRON, sinks=sinks)

    def describe(self) -> SandboxDescription:
        return SandboxDescription(name="open", covered=(), not_covered=())

    def close(self) -> None:
        pass


@pytest.mark.parametrize("backend", SANDBOXES)
async def test_a_real_sandbox_passes_and_leaves_no_files(
    backend: str, tmp_path: Path, build_runner: BuildRunner
) -> None:
    probes = await self_test(build_runner(tmp_path, backend))
    assert probes == tuple(Probe(name=name, is_blocked=True) for name in ESCAPE_NAMES)
    assert list_names(tmp_path) == []


async def test_a_process_that_ends_while_the_self_test_looks_at_it_is_no_escape(
    tmp_path: Path, build_runner: BuildRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_stat = os.stat

    def stat(path: str | bytes | Path | int, **options: Any) -> os.stat_result:
        if re.fullmatch(r"/proc/\d+/cmdline", str(path)):
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), str(path))
        return real_stat(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert all(probe.is_blocked for probe in await self_test(build_runner(tmp_path)))


async def test_a_sandbox_that_does_not_answer_is_refused_with_the_time_limit(
    tmp_path: Path, build_runner: BuildRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = build_runner(tmp_path)

    async def run(request: CommandRequest) -> CommandOutput:
        return CommandOutput(exit_code=124, output=b"", timed_out=True)

    monkeypatch.setattr(runner, "run", run)
    with pytest.raises(SandboxStartError, match="the self-test did not end within 60 s"):
        await self_test(runner)


async def test_a_leaky_sandbox_is_refused(tmp_path: Path, build_runner: BuildRunner) -> None:
    policy = build_runner(tmp_path).sandbox.policy
    with pytest.raises(SandboxError, match=r"write-outside.*read-outside.*network.*see-processes") as caught:
        await self_test(SandboxCommandRunner(LeakySandbox(policy)))
    assert caught.value.exit_code == NO_SANDBOX == 44
    assert caught.value.hint == install_hint()


REASON = "bwrap: No permissions to create new namespace"
FORBIDDEN = f"#!/bin/sh\necho '{REASON}' >&2; exit 1\n"


def broken_runner(tmp_path: Path, build_runner: BuildRunner, script: str = FORBIDDEN) -> SandboxCommandRunner:
    program = tmp_path / "bwrap"
    program.write_text(script)
    program.chmod(0o755)
    (tmp_path / "ws").mkdir()
    policy = build_runner(tmp_path / "ws").sandbox.policy
    return SandboxCommandRunner(BubblewrapSandbox(policy, program=program, cgroup_parent=None))


async def test_a_sandbox_that_cannot_start_reports_the_reason(tmp_path: Path, build_runner: BuildRunner) -> None:
    with pytest.raises(SandboxStartError) as caught:
        await self_test(broken_runner(tmp_path, build_runner))
    assert caught.value.message == f"bubblewrap cannot start: {REASON}"


async def test_a_program_that_only_claims_to_be_bubblewrap_leaves_no_process(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    script = f"#!/bin/bash\nsetsid sleep {MARK} </dev/null >/dev/null 2>&1 & sleep 0.2\n"
    runner = broken_runner(tmp_path, build_runner, script)
    with pytest.raises(SandboxStartError, match="gave no reason"):
        await self_test(runner)
    assert find_survivors(MARK) == []


async def test_self_tests_can_run_at_the_same_time(tmp_path: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(tmp_path)
    found = await asyncio.gather(*(self_test(runner) for _ in range(4)))
    assert all(probe.is_blocked for probes in found for probe in probes)


@pytest.mark.parametrize(
    ("managers", "command"),
    [
        (("apt", "dnf"), "apt install bubblewrap"),
        (("dnf",), "dnf install bubblewrap"),
        (("pacman",), "pacman -S bubblewrap"),
        (("apk",), "apk add bubblewrap"),
        (("zypper",), "zypper install bubblewrap"),
        ((), "install bubblewrap"),
    ],
)
def test_the_install_command_is_that_of_the_package_manager_here(
    monkeypatch: pytest.MonkeyPatch, managers: tuple[str, ...], command: str
) -> None:
    monkeypatch.setattr(
        runner_module, "find_program", lambda name: Path("/usr/bin", name) if name in managers else None
    )
    assert install_command() == command
    assert missing_bubblewrap_warning() == f"bubblewrap is not installed; {PROTECTS_LESS}. Install it: {command}"


def test_the_warning_is_one_line() -> None:
    assert len(missing_bubblewrap_warning().splitlines()) == 1
    assert len(missing_bubblewrap_warning()) < 160
