"""Secrets that a person types: they are on no disk afterwards, and in no list of processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, ctrl
from tests.cli.terminal_user import User, calls, one_step, says

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
KEY = "sk-proj-" + "Zz9" * 14
TOKEN = "ghp_" + "A1b2C3d4E5" * 4


def holding(folder: Path, secret: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_nothing_that_was_typed_anywhere_is_kept(sit: Open, user: User) -> None:
    asking = calls("s1", "ask_user", question="Which token?", options=["none", "another"])
    seat = sit(*one_step(asking, {**says("s1", "wait"), "delay_ms": 1500}, says("s1", "that was it")))
    seat.says(f"!echo {TOKEN}")
    seat.sees("takes this output along")
    seat.says(f"use {KEY}")
    seat.sees("Which token?")
    seat.settles()
    seat.says(f"this {TOKEN}")
    seat.sees("answered:")
    seat.types(f"or {KEY}" + ctrl("s"))
    seat.sees("that was it")
    seat.says(f"#remember {TOKEN}")
    seat.sees("not remembered")
    seat.types(ctrl("d"))
    assert seat.ends() == 0
    assert holding(user.data, KEY) + holding(user.data, TOKEN) == []
    assert (user.data / "history").stat().st_mode & 0o777 == 0o600


def test_a_note_is_in_no_list_of_processes(sit: Open, user: User) -> None:
    seat = sit(*one_step(says("s1", "x")))
    seat.sees("Ctrl-D leaves")
    seen: list[bytes] = []
    seat.types("#a private note" + ENTER)
    seat.until(lambda: looks_at_processes(seen) or ": a private note" in seat.all(), "the note to be kept")
    assert not [line for line in seen if b"private note" in line]


def looks_at_processes(seen: list[bytes]) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            seen.append(path.read_bytes())
        except OSError:
            continue
    return False
