"""Secrets that a person types: they are on no disk afterwards, and in no list of processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, ctrl
from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
KEY = "sk-proj-" + "Zz9" * 14
TOKEN = "ghp_" + "A1b2C3d4E5" * 4


def files_containing(folder: Path, secret: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_nothing_that_was_typed_anywhere_is_kept(sit: Open, user: User) -> None:
    asking = step_call("s1", "ask_user", question="Which token?", options=["none", "another"])
    seat = sit(*one_step(asking, {**step_reply("s1", "wait"), "delay_ms": 1500}, step_reply("s1", "that was it")))
    seat.send_line(f"!echo {TOKEN}")
    seat.wait_for("takes this output along")
    seat.send_line(f"use {KEY}")
    seat.wait_for("Which token?")
    seat.pause()
    seat.send_line(f"this {TOKEN}")
    seat.wait_for("answered:")
    seat.send(f"or {KEY}" + ctrl("s"))
    seat.wait_for("that was it")
    seat.send_line(f"#remember {TOKEN}")
    seat.wait_for("not remembered")
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0
    assert files_containing(user.data, KEY) + files_containing(user.data, TOKEN) == []
    assert (user.data / "history").stat().st_mode & 0o777 == 0o600


def test_a_note_is_in_no_list_of_processes(sit: Open, user: User) -> None:
    seat = sit(*one_step(step_reply("s1", "x")))
    seat.wait_for("Ctrl-D leaves")
    seen: list[bytes] = []
    seat.send("#a private note" + ENTER)
    seat.wait_until(
        lambda: collect_command_lines(seen) or ": a private note" in seat.full_text(), "the note to be kept"
    )
    assert not [line for line in seen if b"private note" in line]


def collect_command_lines(seen: list[bytes]) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            seen.append(path.read_bytes())
        except OSError:
            continue
    return False
