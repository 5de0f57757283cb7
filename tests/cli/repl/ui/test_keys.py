"""Keys beyond plain typing: vi, the pager, the window, and what takes things back."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TerminalSession, ctrl
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer, one_step, step_call, step_reply

Open = Callable[..., TerminalSession]
slow = pytest.mark.slow


def settings(user: User, text: str) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


@slow
def test_vi_keys_edit_the_prompt_when_they_are_set(sit: Open, user: User) -> None:
    settings(user, 'editing_mode = "vi"\n')
    seat = sit(answer("Understood."))
    seat.wait_for("Ctrl-D leaves")
    seat.send("helo world" + ESC)
    seat.pause()
    seat.send("0fl" + "il" + ESC)
    seat.wait_for("hello world")
    seat.pause()
    seat.send("$a!")
    seat.wait_for("hello world!")
    seat.send(ENTER)
    seat.wait_for("Understood.")
    assert request(seat) == "hello world!"


@slow
def test_what_was_changed_is_taken_back_and_done_again(sit: Open) -> None:
    seat = sit(
        *one_step(step_call("s1", "write_file", path="new.txt", content="new"), step_reply("s1", "Written.")),
        AGENT_APPROVAL_MODE="yolo",
    )
    seat.send_line("write it")
    seat.wait_for("1 ok")
    new = seat.folder / "new.txt"
    assert new.read_text() == "new"
    seat.send_line("/diff")
    seat.wait_for("1 file; changes made by commands are not recorded")
    seat.send_line("/undo")
    seat.wait_for("[y/N]")
    seat.send("y" + ENTER)
    seat.wait_until(lambda: not new.exists(), "the file to go")
    seat.wait_for("/undo")
    seat.pause()
    seat.send_line("/redo -y")
    seat.wait_until(lambda: new.exists(), "the file to come back")
    assert new.read_text() == "new"


@slow
def test_ctrl_o_shows_all_that_was_folded_newest_first(sit: Open) -> None:
    commands = [step_call("s1", "run_command", command=f"seq {first} {first + 9}") for first in (10, 30)]
    seat = sit(*one_step(*commands, step_reply("s1", "Counted.")), PAGER="cat")
    seat.send_line("count")
    seat.wait_for("1 ok")
    seat.send(ctrl("o"))
    shown = seat.wait_for("──── s1 $ seq 10 19")
    paged = shown[shown.index("──── s1 $ seq 30 39") :]
    assert paged.index("39") < paged.index("seq 10 19")
    seat.send_line("/exit")
    assert seat.wait_exit() == 0


@slow
def test_ctrl_l_clears_the_window_and_not_the_scrollback(sit: Open) -> None:
    seat = sit(answer("The answer to keep."))
    seat.send_line("ask")
    seat.wait_for("The answer to keep.")
    seat.send("half" + ctrl("l"))
    seat.wait_gone("The answer to keep.")
    assert seat.window_text().splitlines()[0] == "> half"
    assert "The answer to keep." in seat.full_text()


@slow
def test_who_types_when_a_card_comes_goes_on_typing(sit: Open) -> None:
    seat = sit(*one_step({**step_call("s1", "run_command", command=PUSH), "delay_ms": 300}))
    seat.send_line("push")
    seat.wait_for("s1 Title of s1")
    seat.wait_until(lambda: seat.send("y") is None and "allow this?" in seat.full_text(), "the card")
    seat.send("y" * 5)
    shown = seat.pause()
    assert "press Tab to answer" in shown
    typed = next(line for line in shown.splitlines() if line.startswith("> y"))
    assert set(typed.removeprefix("> ")) == {"y"} and len(typed) > 7
    assert "allowed" not in seat.full_text()
