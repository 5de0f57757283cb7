"""Taking back what a session changed, and taking that back."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import Seat
from tests.cli.terminal_user import calls, one_step, says

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def test_what_was_undone_can_be_done_again(sit: Open) -> None:
    replies = one_step(calls("s1", "write_file", path="x.txt", content="hello\n"), says("s1", "written"))
    seat = sit(*replies, AGENT_APPROVAL_MODE="auto-edit")
    made = seat.folder / "x.txt"
    seat.says("/redo")
    seat.sees("nothing has been done in this session yet")
    seat.says("write it")
    seat.sees("1 ok")
    seat.says("/redo")
    seat.sees("nothing was taken back in this session")
    seat.says("/undo --yes")
    seat.until(lambda: not made.exists(), "the file to go")
    seat.sees("it is gone")
    seat.says("/redo --yes")
    seat.until(made.exists, "the file to come back")
