"""A killed run leaves no process behind, whether its sandbox is starting or its command is running."""

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import kill

import pytest

from tests.cli.terminal_user import User
from tests.running_processes import read_all

pytestmark = pytest.mark.slow
LIMIT_S = 60
# The self-test, the sandbox and the command all start within this time.
STARTUP_S = 0.15
BACKENDS: dict[str, tuple[str, ...]] = {"sandbox": (), "host": ("--backend", "host", "--skip-check")}


def find_processes(word: str, kind: str) -> list[int]:
    """Return the processes whose environment or command line (`kind`) contains a word."""
    return [pid for pid, text in read_all(kind) if word.encode() in text]


def marker_of(agent: "subprocess.Popen[bytes]") -> str:
    return f"WINDLASS_CALL={agent.pid}-"


def wait_until(condition: Callable[[], object]) -> bool:
    """Poll a condition about processes; return False if it does not come true in time."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@contextmanager
def start_command(user: User, backend: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    folder = user.home / "work"
    folder.mkdir(exist_ok=True)
    line = user.command("exec", "-C", str(folder), *BACKENDS[backend], "--", *words)
    none = subprocess.DEVNULL
    with subprocess.Popen(line, env=user.environment(), cwd=user.home, stdin=none, stdout=none, stderr=none) as process:
        yield process


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_that_is_killed_while_its_command_starts_leaves_no_process(user: User, backend: str, kills: int) -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    for _ in range(max(1, kills // 2)):
        with start_command(user, backend, "sleep", "600.5") as agent:
            marker = marker_of(agent)
            assert wait_until(lambda: find_processes(marker, "environ"))  # noqa: B023 (called at once)
            time.sleep(STARTUP_S * rng.random() ** 2)
            agent.kill()
            agent.wait(LIMIT_S)
        if not wait_until(lambda: not find_processes(marker, "environ")):  # noqa: B023 (called at once)
            for pid in find_processes(marker, "environ"):
                kill(pid, signal.SIGKILL)
            pytest.fail(f"processes are left, seed {seed}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_processes_in_another_session_are_killed_too(user: User, backend: str) -> None:
    with start_command(user, backend, "setsid sleep 600.25 </dev/null >/dev/null 2>&1 & touch started; wait") as agent:
        assert wait_until((user.home / "work/started").exists)
        agent.kill()
        agent.wait(LIMIT_S)
    assert wait_until(lambda: not find_processes(marker_of(agent), "environ"))


def test_the_watchdog_ends_with_the_run(user: User) -> None:
    with start_command(user, "sandbox", "sleep 0.1") as agent:
        assert wait_until(lambda: find_processes(marker_of(agent), "cmdline"))
        assert agent.wait(LIMIT_S) == 0
    assert wait_until(lambda: not find_processes(marker_of(agent), "cmdline"))
