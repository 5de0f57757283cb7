"""What every command runner promises."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner
from tests.agent.backends.backend_cases import BACKENDS, MARK, find_survivors, list_names, make_runner, wait_for_file
from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner


@pytest.fixture(params=BACKENDS)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandRunner]:
    runner = make_runner(request.param, tmp_path)
    yield runner
    if isinstance(runner, SandboxCommandRunner):
        runner.close()


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
    return await runner.run(
        CommandRequest(
            argv=("bash", "-c", command),
            cwd=cwd,
            timeout_s=timeout_s,
            spool=spool,
            cap_bytes=cap_bytes,
            merge_stderr=merge_stderr,
            cancel_check=cancel_check,
        )
    )


async def test_output_and_exit_code_come_back(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "pwd; echo problem >&2; exit 3", tmp_path)
    assert (found.exit_code, found.output) == (3, f"{tmp_path}\nproblem\n".encode())
    assert found.total_bytes == len(found.output)
    assert found.cut_at is None


async def test_stderr_can_be_kept_apart(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "echo out; echo err >&2", tmp_path, merge_stderr=False)
    assert (found.output, found.stderr) == (b"out\n", b"err\n")


async def test_a_program_that_reads_stdin_returns_at_once(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "cat; read x; echo done", tmp_path, timeout_s=5)
    assert (found.exit_code, found.output) == (0, b"done\n")


async def test_bytes_that_are_no_text_survive(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, r"printf 'a\xff\x00b'", tmp_path)).output == b"a\xff\x00b"


async def test_a_time_limit_ends_the_whole_tree(runner: CommandRunner, tmp_path: Path) -> None:
    started = time.monotonic()
    found = await sh(runner, f"echo before; sleep {MARK} & sleep {MARK}", tmp_path, timeout_s=0.4)
    assert time.monotonic() - started < 3
    assert (found.timed_out, found.exit_code, found.output) == (True, 124, b"before\n")
    assert find_survivors(MARK) == []


async def test_a_tree_that_ignores_polite_requests_ends_too(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, f"trap '' TERM; (trap '' TERM; sleep {MARK}) & sleep {MARK}", tmp_path, timeout_s=0.3)
    assert found.timed_out
    assert find_survivors(MARK) == []


async def test_jobs_in_the_background_do_not_hold_up_the_call(runner: CommandRunner, tmp_path: Path) -> None:
    started = time.monotonic()
    found = await sh(runner, f"sleep {MARK} & echo started", tmp_path)
    assert time.monotonic() - started < 2
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
async def test_jobs_that_leave_the_group_end_as_well(runner: CommandRunner, tmp_path: Path, how: str) -> None:
    found = await sh(runner, f"{how.format(mark=MARK)} sleep 0.1; echo started", tmp_path)
    assert found.output == b"started\n"
    assert find_survivors(MARK) == []


async def test_the_cancel_check_is_polled(runner: CommandRunner, tmp_path: Path) -> None:
    started = time.monotonic()
    found = await sh(
        runner, f"echo so far; sleep {MARK}", tmp_path, cancel_check=lambda: time.monotonic() - started > 0.3
    )
    assert time.monotonic() - started < 2
    assert (found.cancelled, found.exit_code, found.output) == (True, 130, b"so far\n")
    assert find_survivors(MARK) == []


async def test_nothing_starts_when_it_is_already_cancelled(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, "touch made", tmp_path, cancel_check=lambda: True)).cancelled
    assert list_names(tmp_path) == []


async def test_cancelling_the_caller_kills_the_tree_and_comes_through(runner: CommandRunner, tmp_path: Path) -> None:
    call = asyncio.create_task(sh(runner, f"touch started; sleep {MARK} & sleep {MARK}", tmp_path))
    await wait_for_file(tmp_path / "started")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert find_survivors(MARK) == []


async def test_the_event_loop_goes_on_meanwhile(runner: CommandRunner, tmp_path: Path) -> None:
    call = asyncio.create_task(sh(runner, "sleep 0.5", tmp_path))
    ticks = 0
    while not call.done():
        await asyncio.sleep(0.05)
        ticks += 1
    assert ticks >= 6


async def test_commands_run_side_by_side(runner: CommandRunner, tmp_path: Path) -> None:
    started = time.monotonic()
    found = await asyncio.gather(*(sh(runner, f"sleep 0.3; echo {n}", tmp_path) for n in range(8)))
    assert [one.output for one in found] == [f"{n}\n".encode() for n in range(8)]
    assert time.monotonic() - started < 1.5


async def test_too_much_output_keeps_head_tail_and_true_size(runner: CommandRunner, tmp_path: Path) -> None:
    spool = tmp_path / "outputs" / "whole.txt"
    found = await sh(runner, "seq 1 100000", tmp_path, cap_bytes=1000, spool=spool)
    whole = "".join(f"{n}\n" for n in range(1, 100001)).encode()
    assert (found.total_bytes, found.cut_at) == (len(whole), 500)
    assert found.output == whole[:500] + whole[-500:]
    assert found.spool == spool
    assert spool.read_bytes() == whole


async def test_a_flood_is_counted_in_little_memory(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "head -c 300000000 /dev/zero", tmp_path)
    assert (found.exit_code, found.total_bytes, len(found.output)) == (0, 300_000_000, 1_000_000)


async def test_an_endless_flood_ends_at_the_time_limit(runner: CommandRunner, tmp_path: Path) -> None:
    found = await sh(runner, "yes", tmp_path, timeout_s=0.3)
    assert found.timed_out
    assert found.total_bytes > 0


async def test_a_missing_folder_or_program_is_an_os_error(runner: CommandRunner, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await sh(runner, "true", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        await runner.run(CommandRequest(argv=("no-such-program-here",), cwd=tmp_path, timeout_s=1))
    with pytest.raises(OSError, match="null"):
        await sh(runner, "echo \0", tmp_path)


async def test_death_by_signal_is_told_as_shells_do(runner: CommandRunner, tmp_path: Path) -> None:
    assert (await sh(runner, "kill -9 $$", tmp_path)).exit_code == 137


async def test_no_descriptor_of_ours_is_inherited(runner: CommandRunner, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as open_file:
        os.set_inheritable(open_file.fileno(), True)
        found = await sh(runner, "for n in {3..99}; do (: >&$n) 2>/dev/null && echo $n; done", tmp_path)
    assert found.output == b""
