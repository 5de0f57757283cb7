"""Taking back what a session changed, and taking that back."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import one_step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]


def test_what_was_undone_can_be_done_again(sit: Open) -> None:
    replies = one_step(step_call("s1", "write_file", path="x.txt", content="hello\n"), step_reply("s1", "written"))
    seat = sit(*replies, AGENT_APPROVAL_MODE="auto-edit")
    made = seat.folder / "x.txt"
    seat.send_line("/redo")
    seat.wait_for("nothing has been done in this session yet")
    seat.send_line("write it")
    seat.wait_for("1 ok")
    seat.send_line("/redo")
    seat.wait_for("nothing was taken back in this session")
    seat.send_line("/undo --yes")
    seat.wait_until(lambda: not made.exists(), "the file to go")
    seat.wait_for("Deleted x.txt")
    seat.send_line("/redo --yes")
    seat.wait_until(made.exists, "the file to come back")
