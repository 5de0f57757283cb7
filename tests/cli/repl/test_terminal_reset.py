"""External programs may leave the terminal in any state; the prompt restores it."""

from collections.abc import Iterator

import pytest

from cli.repl.repl import SHELL_OUTPUT_NOTE
from tests.cli.repl.terminal_session import OpenTerminal, ctrl
from tests.cli.repl.tmux_session import TmuxSession
from tests.cli.terminal_user import User, answer
from tests.programs import require

pytestmark = pytest.mark.slow
# Alternate screen, hidden cursor, red, no wrapping, a scroll region, mouse reporting.
MESS = r"printf '\033[?1049h\033[?25l\033[31m\033[?7l\033[3;5r\033[?1000h\033[?1003hleft behind'"
FLAGS = "#{alternate_on} #{cursor_flag} #{wrap_flag} #{scroll_region_upper} #{mouse_any_flag}"


@pytest.fixture
def tmux(user: User) -> Iterator[TmuxSession]:
    require("tmux")
    terminal = TmuxSession(user, model=user.script(answer("Still here.")), columns=80, rows=12)
    terminal.wait_ready()
    yield terminal
    terminal.close()


@pytest.fixture
def mess(user: User) -> str:
    (user.home / "project" / "mess.sh").write_text(f"stty raw -echo\n{MESS}\n")
    return "sh mess.sh"


def send_line(terminal: TmuxSession, line: str) -> None:
    terminal.send(line)
    terminal.wait_for(f"> {line}")
    terminal.press("Enter")


def test_the_terminal_is_reset_after_a_shell_command(tmux: TmuxSession, mess: str) -> None:
    before = tmux.query(FLAGS)
    send_line(tmux, f"!{mess}")
    tmux.wait_for(SHELL_OUTPUT_NOTE)
    assert tmux.query(FLAGS) == before
    send_line(tmux, "are you there?")
    shown = tmux.wait_for("Still here.")
    assert "Windlass" in shown and "> are you there?" in shown


def test_the_terminal_is_reset_after_the_editor(open_terminal: OpenTerminal, mess: str) -> None:
    terminal = open_terminal(answer("x"), VISUAL=mess)
    terminal.wait_ready()
    terminal.send(ctrl("x") + ctrl("e"))
    # The text may be erased again before the screen was read.
    terminal.wait_until(lambda: b"left behind" in terminal.raw_output, "the editor")
    terminal.send("usable")
    terminal.wait_for("> usable")
    for mode in (b"?1000", b"?1003"):
        assert terminal.raw_output.rfind(b"\x1b[%bl" % mode) > terminal.raw_output.rfind(b"\x1b[%bh" % mode)
    assert terminal.raw_output.rfind(b"\x1b[?7h") > terminal.raw_output.rfind(b"\x1b[?7l")
    # Shown again first, then hidden by the prompt, which draws its own.
    assert terminal.raw_output.rfind(b"\x1b[?25h") > terminal.raw_output.index(b"left behind")


def test_background_processes_of_a_shell_command_cannot_write_to_the_terminal(
    open_terminal: OpenTerminal, user: User
) -> None:
    terminal = open_terminal(answer("x"), columns=200)
    terminal.wait_ready()
    done = user.home / "done"
    terminal.send_line(f"!trap '' HUP; (sleep 0.6; echo LATE'R' >/dev/tty; echo LATE'R'; echo >{done}) & echo started")
    terminal.wait_for(SHELL_OUTPUT_NOTE)
    terminal.send("a draft")
    terminal.wait_until(done.exists, "the rest of the command")
    terminal.pause()
    terminal.wait_in_window("> a draft")
    assert b"LATER" not in terminal.raw_output


def test_output_without_a_final_newline_is_preserved(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.send_line("!printf 'no end'")
    assert f"no end\nexit 0; {SHELL_OUTPUT_NOTE}" in terminal.wait_for(SHELL_OUTPUT_NOTE)
