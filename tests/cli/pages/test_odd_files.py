"""A FIFO or anything else in place of a file of a session neither hangs nor breaks a command, and `fsck` reports it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.sessions.store import SessionFolder
from tests.agent.sessions.past_runs import completed_run, write_run
from tests.cli.terminal_user import User, answer
from tooling.files.open_regular import NOT_REGULAR

pytestmark = pytest.mark.slow

# `fifo` blocks whoever opens it, `zero` never ends.
KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "zero": lambda path: path.symlink_to("/dev/zero"),
}
COMMANDS = (
    *(("sessions", name, "odd") for name in ("show", "export", "diff")),
    *(("sessions", name) for name in ("list", "gc")),
    *(("sessions", "search", "x"), ("sessions", "search", "x", "--deep"), ("sessions", "fork", "odd", "copy")),
    *(("runs", "list"), ("runs", "show", "last"), ("runs", "events", "last", "-f")),
    *(("runs", "list", "--session", "odd"), ("rules", "test", "--against", "30d")),
    *(("resume",), ("__complete", "zsh", "resume", "")),
)  # fmt: skip


def make_odd(folder: SessionFolder, name: str, kind: str) -> None:
    path = folder.root / name
    path.unlink(missing_ok=True)
    KINDS[kind](path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["events.jsonl", "SESSION.json", "title", "lock"])
def test_no_command_hangs_or_crashes(user: User, name: str, kind: str) -> None:
    write_run(user.data, "good", completed_run("the good one"))
    odd = write_run(user.data, "odd", completed_run("the odd one"))
    # The log is idle, so that commands may bring its summary up to date.
    os.utime(odd.events, (0, 0))
    make_odd(odd, name, kind)
    # User.agent ends a command that hangs, and the test with it.
    for words in COMMANDS:
        ended = user.agent(*words)
        assert ended.exit_code in (0, 1, 2, 42) and "Traceback" not in ended.stderr, (words, ended.stderr)
    assert "the good one" in user.agent("sessions", "list").stdout
    reported = user.agent("sessions", "fsck", "--dry-run")
    assert (reported.exit_code, f"odd  {name}  {NOT_REGULAR}\n" in reported.stdout) == (1, True)
    repaired = user.agent("sessions", "fsck")
    assert f"odd  {name}  {NOT_REGULAR}  (repaired)\n" in repaired.stdout
    assert (user.data / "sessions" / "odd" / f"{name}.odd").exists()


@pytest.mark.parametrize("name", ["events.jsonl", "lock"])
def test_a_run_in_such_a_session_says_what_is_wrong(user: User, name: str) -> None:
    folder = write_run(user.data, "odd", completed_run())
    make_odd(folder, name, "fifo")
    ended = user.agent("run", "hi", "-C", ".", "--session", "odd", "--model", user.script(answer("hello")))
    assert (ended.exit_code, f"{folder.root / name} is {NOT_REGULAR}" in ended.stderr) == (1, True)
    assert "space" not in ended.stderr


@pytest.mark.parametrize("name", ["events.jsonl", "lock"])
def test_such_a_session_can_be_removed(user: User, name: str) -> None:
    folder = write_run(user.data, "odd", completed_run())
    make_odd(folder, name, "fifo")
    assert user.agent("sessions", "rm", "odd", "--yes").exit_code == 0
    assert not folder.root.exists()


def test_odd_results_and_copies_are_moved_away_too(user: User) -> None:
    folder = write_run(user.data, "odd", completed_run())
    folder.steps.mkdir(mode=0o700, exist_ok=True)
    os.mkfifo(folder.steps / "aa.json")
    os.mkfifo(folder.outputs / "s")
    repaired = user.agent("sessions", "fsck", "odd")
    assert [line.split()[1] for line in repaired.stdout.splitlines()] == ["outputs/s", "steps/aa.json"]
    assert user.agent("sessions", "fsck", "odd").exit_code == 0
