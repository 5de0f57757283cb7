"""A prewarmed sandbox behaves exactly like one that is started on demand."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.backends.backend import BackendOptions
from agent.backends.sandbox.lazy_runner import LazySandboxRunner
from tests.programs import needs
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = [pytest.mark.slow, needs("bwrap", "pgrep")]


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


async def test_a_command_finds_the_same_environment(runner: LazySandboxRunner) -> None:
    command = """
        env | sort; echo "$- $# $0 $$ $PPID $SHLVL $_"; declare -p
        set -o | sort; shopt | sort; trap -p; umask; ulimit -a
        tr '\\0' ' ' < /proc/$$/cmdline; readlink /proc/$$/fd/0; ls /proc/$$/fd
        grep -E '^(SigIgn|SigCgt|Cap|NoNew|Seccomp)' /proc/$$/status
        ps ax -o pid,ppid,pgid,sid,comm; bash -c 'echo $SHLVL $PPID'
    """
    prewarmed = (await run(runner, command)).output.decode()
    request = CommandRequest(argv=("bash", "-c", command), cwd=workspace_of(runner), timeout_s=20, merge_stderr=False)
    assert comparable(prewarmed) == comparable((await runner.run(request)).output.decode())


def comparable(text: str) -> list[str]:
    """Return the lines without those that differ between any two commands."""
    varying = ("WINDLASS_CALL", "BASHPID", "EPOCH", "RANDOM", "SRANDOM", "SECONDS")
    return [line for line in text.splitlines() if not any(name in line for name in varying)]


async def test_no_process_is_left_when_the_command_has_ended(runner: LazySandboxRunner) -> None:
    mark = f"62{os.getpid()}"
    ended = await run(runner, f"(setsid sleep {mark} >/dev/null 2>&1 </dev/null &); echo out")
    assert (ended.exit_code, ended.output) == (0, b"out\n")
    assert not is_running(f"^sleep {mark}")


async def test_the_time_limit_kills_all_processes(runner: LazySandboxRunner) -> None:
    mark = f"61{os.getpid()}"
    ended = await run(runner, f"echo started; setsid sleep {mark} & sleep {mark}", timeout_s=0.5)
    assert (ended.timed_out, ended.output) == (True, b"started\n")
    assert not is_running(f"^sleep {mark}")


async def test_concurrent_commands_do_not_share_a_sandbox(runner: LazySandboxRunner) -> None:
    ended = await asyncio.gather(
        *(run(runner, f"touch /dev/shm/{n}; sleep 0.1; ls /dev/shm; echo {n}") for n in range(5))
    )
    assert [one.output.decode().split() for one in ended] == [[str(n), str(n)] for n in range(5)]


async def test_a_command_too_long_for_a_pipe_gets_a_new_sandbox(runner: LazySandboxRunner) -> None:
    ended = await run(runner, f"echo {'x' * 70_000} | wc -c")
    assert ended.output.strip() == b"70001"


async def test_another_folder_or_environment_gets_a_new_sandbox(runner: LazySandboxRunner) -> None:
    inner = workspace_of(runner) / "inner"
    inner.mkdir()
    request = CommandRequest(argv=("bash", "-c", "pwd; echo $MORE"), cwd=inner, timeout_s=20, env={"MORE": "yes"})
    assert (await runner.run(request)).output.decode() == f"{inner}\nyes\n"


async def test_closing_ends_the_prewarmed_sandbox(runner: LazySandboxRunner) -> None:
    await run(runner, "true")
    await asyncio.sleep(0.1)
    await runner.close()
    assert not is_running(str(workspace_of(runner)))


async def test_an_outdated_prewarmed_sandbox_is_replaced(runner: LazySandboxRunner) -> None:
    await runner.allow_host("example.com")
    await run(runner, "true")
    await asyncio.sleep(0.1)
    await runner.close()
    assert not is_running(str(workspace_of(runner)))
