"""Key bindings: vi mode, the pager, clearing the screen, typing while a card appears."""

import pytest

from cli.repl.ui.approval_cards import FOCUS_HINT
from tests.cli.repl.terminal_session import ENTER, ESC, OpenTerminal, ctrl
from tests.cli.repl.ui.test_approvals_inline import PUSH, decisions
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import User, answer, one_step, step_call, step_reply

pytestmark = pytest.mark.slow


def write_settings(user: User, text: str) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def test_vi_mode_edits_the_prompt(open_terminal: OpenTerminal, user: User) -> None:
    write_settings(user, 'editing_mode = "vi"\n')
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("helo world" + ESC)
    terminal.pause()
    terminal.send("0fl" + "il" + ESC)
    terminal.wait_for("hello world")
    terminal.pause()
    terminal.send("$a!")
    terminal.wait_for("hello world!")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "hello world!"


def test_ctrl_o_shows_folded_output_newest_first(open_terminal: OpenTerminal) -> None:
    commands = [step_call("s1", "run_command", command=f"seq {first} {first + 9}") for first in (10, 30)]
    terminal = open_terminal(*one_step(*commands, step_reply("s1", "Counted.")), PAGER="cat")
    terminal.send_line("count")
    terminal.wait_for("1 ok")
    terminal.send(ctrl("o"))
    shown = terminal.wait_for("──── s1 $ seq 10 19")
    paged = shown[shown.index("──── s1 $ seq 30 39") :]
    assert paged.index("39") < paged.index("seq 10 19")
    terminal.send_line("/exit")
    assert terminal.wait_exit() == 0


def test_ctrl_l_clears_the_window_and_keeps_the_scrollback(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("The answer to keep."))
    terminal.send_line("ask")
    terminal.wait_for("The answer to keep.")
    terminal.send("half" + ctrl("l"))
    terminal.wait_gone("The answer to keep.")
    # The window is empty for a moment before the prompt is drawn again.
    terminal.wait_until(lambda: terminal.window_text().splitlines()[2:3] == ["> half"], "the prompt")
    assert "The answer to keep." in terminal.full_text()


def test_typing_continues_when_a_card_appears(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step({**step_call("s1", "run_command", command=PUSH), "delay_ms": 300}))
    terminal.send_line("push")
    terminal.wait_for("s1 Title of s1")
    terminal.wait_until(lambda: terminal.send("y") is None and "allow this?" in terminal.full_text(), "the card")
    terminal.send("y" * 5)
    terminal.pause()
    terminal.wait_in_window(FOCUS_HINT)
    terminal.wait_in_window("> yyyyyyy")
    shown = terminal.window_text()
    typed = next(line for line in shown.splitlines() if line.startswith("> y"))
    assert set(typed.removeprefix("> ")) == {"y"} and len(typed) > 7
    assert decisions(terminal) == []
