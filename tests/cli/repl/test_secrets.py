"""Secrets typed at the prompt are not written to disk and not visible in the process list."""

from pathlib import Path

import pytest

from cli.repl.repl import SHELL_OUTPUT_NOTE
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import User, one_step, step_call, step_reply
from tests.running_processes import read_all

pytestmark = pytest.mark.slow
KEY = "sk-proj-" + "Zz9" * 14
TOKEN = "ghp_" + "A1b2C3d4E5" * 4


def files_containing(folder: Path, secret: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_typed_secrets_are_not_stored_anywhere(open_terminal: OpenTerminal, user: User) -> None:
    asking = step_call("s1", "ask_user", question="Which token?", options=["none", "another"])
    terminal = open_terminal(
        *one_step(asking, {**step_reply("s1", "wait"), "delay_ms": 1500}, step_reply("s1", "that was it"))
    )
    terminal.send_line(f"!echo {TOKEN}")
    terminal.wait_for(SHELL_OUTPUT_NOTE)
    terminal.send_line(f"use {KEY}")
    terminal.wait_for("Which token?")
    terminal.pause()
    terminal.send_line(f"this {TOKEN}")
    terminal.wait_until(lambda: any(one["type"] == "question.answered" for one in events(terminal)), "the answer")
    terminal.send(f"or {KEY}" + ctrl("s"))
    terminal.wait_for("that was it")
    terminal.send_line(f"#remember {TOKEN}")
    terminal.wait_for("error: ")
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    assert files_containing(user.data, KEY) + files_containing(user.data, TOKEN) == []
    assert (user.data / "history").stat().st_mode & 0o777 == 0o600


def test_a_note_is_not_visible_in_the_process_list(open_terminal: OpenTerminal, user: User) -> None:
    terminal = open_terminal(*one_step(step_reply("s1", "x")))
    terminal.wait_ready()
    seen: list[bytes] = []
    terminal.send("#a private note" + ENTER)
    terminal.wait_until(
        lambda: collect_command_lines(seen) or ": a private note" in terminal.full_text(), "the note to be saved"
    )
    assert not [line for line in seen if b"private note" in line]


def collect_command_lines(seen: list[bytes]) -> bool:
    seen += [line for _, line in read_all("cmdline")]
    return False
