"""Commands of a run share one sandbox: files, loopback, background processes; each can be killed alone."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.backends.backend import BackendOptions
from agent.backends.sandbox.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from agent.backends.sandbox.lazy_runner import LazySandboxRunner
from agent.backends.sandbox.self_test import SandboxStartError
from agent.vocabulary.errors import SandboxError
from tests.programs import needs
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = [pytest.mark.slow, needs("bwrap", "pgrep", "curl", "git")]


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[LazySandboxRunner]:
    workspace = tmp_path / "ws"
    workspace.mkdir()

    def fail(error: Exception) -> None:
        raise AssertionError(error)

    options = BackendOptions(
        workspace=workspace,
        extra_dirs=(),
        hidden=(),
        environ=dict(os.environ),
        allow_net=(),
        deny_net=(),
        socket_dir=tmp_path / "net",
        on_attempt=print,
        warn=print,
        on_sandbox_error=fail,
    )
    lazy = LazySandboxRunner(options)
    await lazy.run(CommandRequest(argv=("bash", "-c", "true"), cwd=workspace, timeout_s=20))
    await asyncio.sleep(0)
    yield lazy
    await lazy.close()


def is_running(pattern: str) -> bool:
    return subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=False).returncode == 0


def workspace_of(runner: LazySandboxRunner) -> Path:
    return runner._options.workspace


async def run(runner: LazySandboxRunner, command: str, timeout_s: float = 20) -> CommandOutput:
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=workspace_of(runner), timeout_s=timeout_s))


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo one; exit 7", "one\n", 7),
        ("kill -9 $$", "", 137),
        ("printf '%s|' '  a  ' '\\x' \"$0\" \"$#\"", "  a  |\\x|bash|0|", 0),
        ("cat <<'END'\nline one\n  line two\nEND", "line one\n  line two\n", 0),
        ("read -r x || echo closed", "closed\n", 0),
        ("ulimit -c; ulimit -n", "0\n8192\n", 0),
        ("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", 0),
        ("pwd -P > where; cat where", None, 0),
        ("printf '%s|' \"it's\" '\"' '$x `y` \\' 'Ärger ← \u0081'", "it's|\"|$x `y` \\|Ärger ← \u0081|", 0),
        ("", "", 0),
    ],
)
async def test_a_command_gives_the_same_result(
    runner: LazySandboxRunner, command: str, output: str | None, code: int
) -> None:
    ended = await run(runner, command)
    expected = f"{workspace_of(runner)}\n" if output is None else output
    assert (ended.output.decode(), ended.exit_code) == (expected, code)


async def test_no_process_is_left_when_the_command_has_ended(runner: LazySandboxRunner) -> None:
    mark = f"62{os.getpid()}"
    ended = await run(runner, f"(setsid sleep {mark} >/dev/null 2>&1 </dev/null &); echo out")
    assert (ended.exit_code, ended.output) == (0, b"out\n")
    assert not is_running(f"^sleep {mark}")


async def test_a_sandbox_that_fails_when_it_is_started_again_ends_the_run_and_is_no_failed_command(
    runner: LazySandboxRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SandboxError] = []
    runner._options = replace(runner._options, on_sandbox_error=told.append)
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert (await run(runner, "kill -9 $PPID")).exit_code == 137
    monkeypatch.setattr((await runner._get_runner()).sandbox, "_program", broken)
    with pytest.raises(SandboxStartError, match="bubblewrap cannot start: bwrap: No permissions"):
        await run(runner, "echo outside > made")
    assert ([error.exit_code for error in told], (workspace_of(runner) / "made").exists()) == ([44], False)


async def test_the_time_limit_kills_all_processes(runner: LazySandboxRunner) -> None:
    mark = f"61{os.getpid()}"
    ended = await run(runner, f"echo started; setsid sleep {mark} & sleep {mark}", timeout_s=0.5)
    assert (ended.timed_out, ended.output) == (True, b"started\n")
    assert not is_running(f"^sleep {mark}")


async def leave(runner: LazySandboxRunner, command: str, timeout_s: float = 20) -> CommandOutput:
    """Run a command whose background processes may stay."""
    request = CommandRequest(
        argv=("bash", "-c", command), cwd=workspace_of(runner), timeout_s=timeout_s, may_leave_processes=True
    )
    return await runner.run(request)


async def test_files_in_tmp_and_home_stay_for_the_next_command(runner: LazySandboxRunner) -> None:
    await run(runner, "echo one > /tmp/note; echo two > ~/note; echo three > /dev/shm/note")
    assert (await run(runner, "cat /tmp/note ~/note /dev/shm/note")).output == b"one\ntwo\nthree\n"


async def test_a_server_left_in_the_background_is_reached_by_the_next_command(runner: LazySandboxRunner) -> None:
    script = (
        "/usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 & "
        "until (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null; do sleep 0.05; done; echo up"
    )
    started = await leave(runner, script)
    # The server writes its own line at any moment.
    assert b"up\n" in started.output
    (left,) = started.left_running
    assert left.command.endswith("-m http.server 8123 --bind 127.0.0.1")
    # Twice, because the server writes to the output of a command that has ended.
    for _ in range(2):
        found = await run(runner, "curl -sS http://127.0.0.1:8123/ | head -n 1")
        assert found.output.startswith(b"<!DOCTYPE"), found
    ended = await run(
        runner, f"kill {left.pid} && while kill -0 {left.pid} 2>/dev/null; do sleep 0.02; done; echo gone"
    )
    assert ended.output == b"gone\n"


async def test_background_processes_end_with_the_sandbox(runner: LazySandboxRunner) -> None:
    mark = f"63{os.getpid()}"
    left = await leave(runner, f"setsid sleep {mark} & env -i setsid sleep {mark} & disown -a; echo out")
    assert (left.output, len(left.left_running)) == (b"out\n", 2)
    assert is_running(f"^sleep {mark}")
    await runner.close()
    assert not is_running(f"^sleep {mark}")


async def test_a_command_that_times_out_takes_its_background_processes_with_it(runner: LazySandboxRunner) -> None:
    kept, mark = f"64{os.getpid()}", f"65{os.getpid()}"
    await leave(runner, f"sleep {kept} &")
    ended = await leave(runner, f"(env -i setsid sleep {mark} &) ; setsid sleep {mark} & sleep {mark}", timeout_s=0.5)
    assert ended.timed_out
    assert not is_running(f"^sleep {mark}")
    assert is_running(f"^sleep {kept}")


async def test_a_process_that_is_ended_with_its_command_is_counted(runner: LazySandboxRunner) -> None:
    ended = await run(runner, "sleep 60 & echo out")
    assert (ended.output, ended.ended_processes, ended.left_running) == (b"out\n", 1, ())


async def test_concurrent_commands_share_the_sandbox(runner: LazySandboxRunner) -> None:
    meet = "until [ $(ls /tmp/met | wc -l) = 5 ]; do sleep 0.01; done"
    ended = await asyncio.gather(
        *(run(runner, f"mkdir -p /tmp/met; touch /tmp/met/{n}; {meet}; echo {n}") for n in range(5))
    )
    assert [one.output.decode() for one in ended] == [f"{n}\n" for n in range(5)]


async def test_a_very_long_command_runs(runner: LazySandboxRunner) -> None:
    ended = await run(runner, f"echo {'x' * 100_000} | wc -c")
    assert ended.output.strip() == b"100001"


async def test_a_command_has_its_own_folder_and_environment(runner: LazySandboxRunner) -> None:
    inner = workspace_of(runner) / "inner"
    inner.mkdir()
    request = CommandRequest(argv=("bash", "-c", "pwd; echo $MORE"), cwd=inner, timeout_s=20, env={"MORE": "yes"})
    assert (await runner.run(request)).output.decode() == f"{inner}\nyes\n"


async def test_allowing_a_host_keeps_the_sandbox(runner: LazySandboxRunner) -> None:
    await run(runner, "echo kept > /tmp/note")
    await runner.allow_host("example.com")
    found = await run(runner, "cat /tmp/note; curl -sS -m 5 http://other.example/")
    assert found.output.startswith(b"kept\n"), found
    assert b"other.example" in found.output


async def test_removed_mounts_give_a_new_sandbox(runner: LazySandboxRunner) -> None:
    await run(runner, "git init -q inner && echo old > /tmp/note")
    sandbox = (await runner._get_runner()).sandbox
    assert isinstance(sandbox, BubblewrapSandbox)
    sandbox.policy = replace(sandbox.policy, protected=(workspace_of(runner) / "inner" / ".git" / "config",))
    found = await run(runner, "cat /tmp/note; echo x >> inner/.git/config")
    assert b"No such file" in found.output
    assert b"Read-only" in found.output


async def test_closing_ends_the_sandbox(runner: LazySandboxRunner) -> None:
    await runner.allow_host("example.com")
    await run(runner, "true")
    await runner.close()
    assert not is_running(str(workspace_of(runner)))
