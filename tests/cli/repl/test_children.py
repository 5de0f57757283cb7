"""Programs that had the terminal: whatever they leave behind, the prompt is as it was."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import TerminalSession, ctrl
from tests.cli.repl.tmux_session import TmuxSession
from tests.cli.terminal_user import User, answer
from tests.programs import require

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
# The other screen, a hidden cursor, red, no wrapping, a part of the window that scrolls, a mouse that is reported.
MESS = r"printf '\033[?1049h\033[?25l\033[31m\033[?7l\033[3;5r\033[?1000h\033[?1003hleft behind'"
FLAGS = "#{alternate_on} #{cursor_flag} #{wrap_flag} #{scroll_region_upper} #{mouse_any_flag}"


@pytest.fixture
def at_tmux(user: User) -> Iterator[TmuxSession]:
    require("tmux")
    seat = TmuxSession(user, model=user.script(answer("Still here.")), columns=80, rows=12)
    seat.wait_for("Ctrl-D leaves")
    yield seat
    seat.close()


@pytest.fixture
def mess(user: User) -> str:
    (user.home / "project" / "mess.sh").write_text(f"stty raw -echo\n{MESS}\n")
    return "sh mess.sh"


def send_line(seat: TmuxSession, line: str) -> None:
    seat.send(line)
    seat.wait_for(f"> {line}")
    seat.press("Enter")


def test_an_own_command_that_leaves_a_mess_leaves_none_at_the_prompt(at_tmux: TmuxSession, mess: str) -> None:
    before = at_tmux.query(FLAGS)
    send_line(at_tmux, f"!{mess}")
    at_tmux.wait_for("your next request takes this output along")
    assert at_tmux.query(FLAGS) == before
    send_line(at_tmux, "are you there?")
    shown = at_tmux.wait_for("Still here.")
    assert "Windlass" in shown and "> are you there?" in shown


def test_an_editor_that_leaves_a_mess_leaves_none_at_the_prompt(sit: Open, mess: str) -> None:
    seat = sit(answer("x"), VISUAL=mess)
    seat.wait_for("Ctrl-D leaves")
    seat.send(ctrl("x") + ctrl("e"))
    # What it left may be gone again before anybody has seen it.
    seat.wait_until(lambda: b"left behind" in seat.raw_output, "the editor")
    seat.send("usable")
    seat.wait_for("> usable")
    for mode in (b"?1000", b"?1003"):
        assert seat.raw_output.rfind(b"\x1b[%bl" % mode) > seat.raw_output.rfind(b"\x1b[%bh" % mode)
    for mode in (b"?25", b"?7"):
        assert seat.raw_output.rfind(b"\x1b[%bh" % mode) > seat.raw_output.rfind(b"\x1b[%bl" % mode)


def test_what_an_own_command_left_running_cannot_write_to_the_terminal(sit: Open, user: User) -> None:
    seat = sit(answer("x"), columns=200)
    seat.wait_for("Ctrl-D leaves")
    done = user.home / "done"
    seat.send_line(f"!trap '' HUP; (sleep 0.6; echo LATE'R' >/dev/tty; echo LATE'R'; echo >{done}) & echo begun")
    seat.wait_for("your next request takes this output along")
    seat.send("a draft")
    seat.wait_until(done.exists, "the rest of the command")
    assert "> a draft" in seat.pause()
    assert b"LATER" not in seat.raw_output


def test_a_line_without_an_end_stays(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.send_line("!printf 'no end'")
    assert "no end\nexit 0; your next request" in seat.wait_for("your next request takes this output along")
