"""Keys beyond plain typing: vi, the pager, the window, and what takes things back."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, Seat, ctrl
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer, calls, one_step, says

Open = Callable[..., Seat]
slow = pytest.mark.slow


def settings(user: User, text: str) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


@slow
def test_vi_keys_edit_the_prompt_when_they_are_set(sit: Open, user: User) -> None:
    settings(user, 'editing_mode = "vi"\n')
    seat = sit(answer("Understood."))
    seat.sees("Ctrl-D leaves")
    seat.types("helo world" + ESC)
    seat.settles()
    seat.types("0fl" + "il" + ESC)
    seat.sees("hello world")
    seat.settles()
    seat.types("$a!")
    seat.sees("hello world!")
    seat.types(ENTER)
    seat.sees("Understood.")
    assert request(seat) == "hello world!"


@slow
def test_what_was_changed_is_taken_back_and_done_again(sit: Open) -> None:
    seat = sit(
        *one_step(calls("s1", "write_file", path="new.txt", content="new"), says("s1", "Written.")),
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.says("write it")
    seat.sees("1 ok")
    new = seat.folder / "new.txt"
    assert new.read_text() == "new"
    seat.says("/diff")
    seat.sees("1 file; changes made by commands are not recorded")
    seat.says("/undo")
    seat.sees("[y/N]")
    seat.types("y" + ENTER)
    seat.until(lambda: not new.exists(), "the file to go")
    seat.sees("/undo")
    seat.settles()
    seat.says("/redo -y")
    seat.until(lambda: new.exists(), "the file to come back")
    assert new.read_text() == "new"


@slow
def test_ctrl_o_shows_all_that_was_folded_newest_first(sit: Open) -> None:
    commands = [calls("s1", "run_command", command=f"seq {first} {first + 9}") for first in (10, 30)]
    seat = sit(*one_step(*commands, says("s1", "Counted.")), PAGER="cat")
    seat.says("count")
    seat.sees("1 ok")
    seat.types(ctrl("o"))
    shown = seat.sees("──── s1 $ seq 10 19")
    paged = shown[shown.index("──── s1 $ seq 30 39") :]
    assert paged.index("39") < paged.index("seq 10 19")
    seat.says("/exit")
    assert seat.ends() == 0


@slow
def test_ctrl_l_clears_the_window_and_not_the_scrollback(sit: Open) -> None:
    seat = sit(answer("The answer to keep."))
    seat.says("ask")
    seat.sees("The answer to keep.")
    seat.types("half" + ctrl("l"))
    seat.sees_no_more("The answer to keep.")
    assert seat.window().splitlines()[0] == "> half"
    assert "The answer to keep." in seat.all()


@slow
def test_who_types_when_a_card_comes_goes_on_typing(sit: Open) -> None:
    seat = sit(*one_step({**calls("s1", "run_command", command=PUSH), "delay_ms": 300}))
    seat.says("push")
    seat.sees("s1 Title of s1")
    seat.until(lambda: seat.types("y") is None and "allow this?" in seat.all(), "the card")
    seat.types("y" * 5)
    shown = seat.settles()
    assert "press Tab to answer" in shown
    typed = next(line for line in shown.splitlines() if line.startswith("> y"))
    assert set(typed.removeprefix("> ")) == {"y"} and len(typed) > 7
    assert "allowed" not in seat.all()
