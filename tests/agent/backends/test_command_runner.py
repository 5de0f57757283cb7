"""The contract of every command runner."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.agent.backends.backend_cases import (
    BACKENDS,
    CONTAINER,
    MARK,
    TIME_LIMITS,
    BuildRunner,
    find_survivors,
    list_names,
    make_runner,
    open_container,
    wait_for_file,
)
from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner

# Far more than any of these commands takes, and less than the sleep of those that must be killed.
HANG_S = 60


@pytest.fixture(params=[*BACKENDS, CONTAINER])
async def runner(
    request: pytest.FixtureRequest, tmp_path: Path, build_runner: BuildRunner
) -> AsyncIterator[CommandRunner]:
    if request.param == "docker":
        async with open_container(tmp_path, request.getfixturevalue("engine_socket")) as backend:
            yield backend.runner
    else:
        yield make_runner(request.param, tmp_path, build_runner)


async def sh(
    runner: CommandRunner,
    command: str,
    cwd: Path,
    *,
    timeout_s: float = 20,
    spool: Path | None = None,
    cap_bytes: int = 1_000_000,
    merge_stderr: bool = True,
    cancel_check: Callable[[], bool] | None = None,
) -> CommandOutput:
    request = CommandRequest(
        argv=("bash", "-c", command),
        cwd=cwd,
        timeout_s=timeout_s,
        spool=spool,
        cap_bytes=cap_bytes,
        merge_stderr=merge_stderr,
        cancel_check=cancel_check,
    )
    async with asyncio.timeout(HANG_S):
        return await runner.run(request)


async def test_output_is_reported_while_the_command_runs(runner: CommandRunner, tmp_path: Path) -> None:
    parts: list[bytes] = []

    def take(data: bytes) -> None:
        parts.append(data)
        (tmp_path / "seen").touch()

    # It ends only because its first line was reported before its end.
    command = "echo first; until [ -e seen ]; do sleep 0.05; done; echo second"
    request = CommandRequest(argv=("bash", "-c", command), cwd=tmp_path, timeout_s=HANG_S, on_output=take)
    found = await runner.run(request)
    assert (found.exit_code, found.timed_out) == (0, False)
    assert b"".join(parts) == found.output == b"first\nsecond\n"


async def test_output_and_exit_code_are_returned(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "pwd; echo problem >&2; exit 3", tmp_path)
    assert (found.exit_code, found.output) == (3, f"{tmp_path}\nproblem\n".encode())
    assert found.total_bytes == len(found.output)
    assert found.cut_at is None


async def test_stderr_can_be_captured_separately(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "echo out; echo err >&2", tmp_path, merge_stderr=False)
    assert (found.output, found.stderr) == (b"out\n", b"err\n")


async def test_a_program_that_reads_stdin_gets_end_of_file(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "cat; read x; echo done", tmp_path)
    assert (found.exit_code, found.output) == (0, b"done\n")


async def test_binary_output_is_returned_unchanged(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, r"printf 'a\xff\x00b'", tmp_path)).output == b"a\xff\x00b"


async def test_the_time_limit_kills_all_processes(runner: CommandRunner, tmp_path: Path) -> None:
    # On a busy machine the command may not have started within a short limit.
    for timeout_s in TIME_LIMITS:
        found = await sh(runner, f"echo before; sleep {MARK} & sleep {MARK}", tmp_path, timeout_s=timeout_s)
        assert (found.timed_out, found.exit_code) == (True, 124)
        if found.output:
            break
    assert found.output == b"before\n"
    assert find_survivors(MARK) == []


async def test_processes_that_ignore_sigterm_are_killed(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, f"trap '' TERM; (trap '' TERM; sleep {MARK}) & sleep {MARK}", tmp_path, timeout_s=0.3)
    assert found.timed_out
    assert find_survivors(MARK) == []


async def test_background_jobs_do_not_delay_the_result(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, f"sleep {MARK} & echo started", tmp_path)
    assert (found.exit_code, found.output, found.timed_out) == (0, b"started\n", False)
    assert find_survivors(MARK) == []


@pytest.mark.parametrize(
    "how",
    [
        "setsid sleep {mark} &",
        "set -m; sleep {mark} &",
        "setsid sleep {mark} </dev/null >/dev/null 2>&1 &",
        "(setsid nohup sleep {mark} </dev/null >/dev/null 2>&1 &);",
    ],
)
async def test_jobs_that_leave_the_process_group_are_killed(runner: CommandRunner, tmp_path: Path, how: str) -> None:
    found = await sh(runner, f"{how.format(mark=MARK)} sleep 0.1; echo started", tmp_path)
    assert found.output == b"started\n"
    assert find_survivors(MARK) == []


async def test_the_cancel_check_is_polled(runner: CommandRunner, tmp_path: Path) -> None:
    command = f"echo so far; touch started; sleep {MARK}"
    found = await sh(runner, command, tmp_path, cancel_check=(tmp_path / "started").exists)
    assert (found.cancelled, found.exit_code, found.output) == (True, 130, b"so far\n")
    assert find_survivors(MARK) == []


async def test_a_call_that_is_already_cancelled_starts_nothing(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, "touch created", tmp_path, cancel_check=lambda: True)).cancelled
    assert list_names(tmp_path) == []


async def test_cancelling_the_task_kills_all_processes_and_propagates(runner: CommandRunner, tmp_path: Path) -> None:
    call = asyncio.create_task(sh(runner, f"touch started; sleep {MARK} & sleep {MARK}", tmp_path))
    await wait_for_file(tmp_path / "started")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert find_survivors(MARK) == []


async def test_the_event_loop_is_not_blocked(runner: CommandRunner, tmp_path: Path) -> None:
    call = asyncio.create_task(sh(runner, "touch started; until [ -e go ]; do sleep 0.01; done; echo went", tmp_path))
    await wait_for_file(tmp_path / "started")
    (tmp_path / "go").touch()
    assert (await call).output == b"went\n"


async def test_commands_run_concurrently(runner: CommandRunner, tmp_path: Path) -> None:
    # None of them ends before all of them have started.
    meet = "until [ $(ls | wc -l) = 8 ]; do sleep 0.01; done"
    found = await asyncio.gather(*(sh(runner, f"touch {n}; {meet}; echo {n}", tmp_path) for n in range(8)))
    assert [one.output for one in found] == [f"{n}\n".encode() for n in range(8)]


async def test_long_output_is_reduced_to_head_and_tail_with_its_true_size(
    runner: CommandRunner, tmp_path: Path
) -> None:
    spool = tmp_path / "outputs" / "full.txt"
    found = await sh(runner, "seq 1 100000", tmp_path, cap_bytes=1000, spool=spool)
    full = "".join(f"{n}\n" for n in range(1, 100001)).encode()
    assert (found.total_bytes, found.cut_at) == (len(full), 500)
    assert found.output == full[:500] + full[-500:]
    assert found.spool == spool
    assert spool.read_bytes() == full


async def test_very_long_output_is_counted_but_not_stored(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "head -c 300000000 /dev/zero", tmp_path)
    assert (found.exit_code, found.total_bytes, len(found.output)) == (0, 300_000_000, 1_000_000)


async def test_endless_output_stops_at_the_time_limit(runner: CommandRunner, tmp_path: Path) -> None:
    # On a busy machine the command may not have started after the first limit.
    for limit in (0.3, 3.0, 30.0):
        found = await sh(runner, "yes", tmp_path, timeout_s=limit)
        assert found.timed_out
        if found.total_bytes:
            return
    pytest.fail("no output was read")


async def test_a_missing_folder_or_program_raises_os_error(runner: CommandRunner, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await sh(runner, "true", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        await runner.run(CommandRequest(argv=("no-such-program-here",), cwd=tmp_path, timeout_s=1))
    with pytest.raises(OSError, match="null"):
        await sh(runner, "echo \0", tmp_path)


async def test_a_signal_gives_the_exit_code_that_shells_use(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, "kill -9 $$", tmp_path)).exit_code == 137


async def test_no_file_descriptor_is_inherited(runner: CommandRunner, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as open_file:
        os.set_inheritable(open_file.fileno(), True)
        found = await sh(runner, "for n in {3..99}; do (: >&$n) 2>/dev/null && echo $n; done", tmp_path)
    assert found.output == b""


async def test_a_command_reads_the_input_that_it_is_given(runner: CommandRunner, tmp_path: Path) -> None:
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    os.write(write_end, b"one\ntwo\n")
    os.close(write_end)
    request = CommandRequest(argv=("sort", "-r"), cwd=tmp_path, timeout_s=20, stdin=read_end)
    try:
        async with asyncio.timeout(HANG_S):
            output = await runner.run(request)
    finally:
        os.close(read_end)
    assert (output.exit_code, output.output) == (0, b"two\none\n")
