"""Programs that had the terminal: whatever they leave behind, the prompt is as it was."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import Seat, ctrl
from tests.cli.repl.tmux_session import TmuxSeat
from tests.cli.terminal_user import User, answer

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
# The other screen, a hidden cursor, red, no wrapping, a part of the window that scrolls, a mouse that is reported.
MESS = r"printf '\033[?1049h\033[?25l\033[31m\033[?7l\033[3;5r\033[?1000h\033[?1003hleft behind'"
FLAGS = "#{alternate_on} #{cursor_flag} #{wrap_flag} #{scroll_region_upper} #{mouse_any_flag}"


@pytest.fixture
def at_tmux(user: User) -> Iterator[TmuxSeat]:
    assert shutil.which("tmux"), "tmux is needed"
    seat = TmuxSeat(user, model=user.script(answer("Still here.")), columns=80, rows=12)
    seat.sees("Ctrl-D leaves")
    yield seat
    seat.close()


@pytest.fixture
def mess(user: User) -> str:
    (user.home / "project" / "mess.sh").write_text(f"stty raw -echo\n{MESS}\n")
    return "sh mess.sh"


def says(seat: TmuxSeat, line: str) -> None:
    seat.types(line)
    seat.sees(f"> {line}")
    seat.presses("Enter")


def test_an_own_command_that_leaves_a_mess_leaves_none_at_the_prompt(at_tmux: TmuxSeat, mess: str) -> None:
    before = at_tmux.tells(FLAGS)
    says(at_tmux, f"!{mess}")
    at_tmux.sees("your next request takes this output along")
    assert at_tmux.tells(FLAGS) == before
    says(at_tmux, "are you there?")
    shown = at_tmux.sees("Still here.")
    assert "Windlass" in shown and "> are you there?" in shown


def test_an_editor_that_leaves_a_mess_leaves_none_at_the_prompt(sit: Open, mess: str) -> None:
    seat = sit(answer("x"), VISUAL=mess)
    seat.sees("Ctrl-D leaves")
    seat.types(ctrl("x") + ctrl("e"))
    # What it left may be gone again before anybody has seen it.
    seat.until(lambda: b"left behind" in seat.bytes_seen, "the editor")
    seat.types("usable")
    seat.sees("> usable")
    for mode in (b"?1000", b"?1003"):
        assert seat.bytes_seen.rfind(b"\x1b[%bl" % mode) > seat.bytes_seen.rfind(b"\x1b[%bh" % mode)
    for mode in (b"?25", b"?7"):
        assert seat.bytes_seen.rfind(b"\x1b[%bh" % mode) > seat.bytes_seen.rfind(b"\x1b[%bl" % mode)


def test_what_an_own_command_left_running_cannot_write_to_the_terminal(sit: Open, user: User) -> None:
    seat = sit(answer("x"), columns=200)
    seat.sees("Ctrl-D leaves")
    done = user.home / "done"
    seat.says(f"!trap '' HUP; (sleep 0.6; echo LATE'R' >/dev/tty; echo LATE'R'; echo >{done}) & echo begun")
    seat.sees("your next request takes this output along")
    seat.types("a draft")
    seat.until(done.exists, "the rest of the command")
    assert "> a draft" in seat.settles()
    assert b"LATER" not in seat.bytes_seen


def test_a_line_without_an_end_stays(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.says("!printf 'no end'")
    assert "no end\nexit 0; your next request" in seat.sees("your next request takes this output along")
