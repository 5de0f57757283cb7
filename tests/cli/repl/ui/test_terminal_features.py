"""The title of the window shows what is going on, and is given back; links appear only where they work."""

import pytest

from cli.repl.ui.terminal_features import WindowTitle
from cli.repl.ui.tui import WORKING
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, ctrl
from tests.cli.terminal_user import answer

BEGIN, END = b"\x1b[22;2t\x1b]2;windlass ", b"\x1b]2;\x1b\\\x1b[23;2t"


def title(term: str, *, is_wanted: bool = True, **environ: str) -> WindowTitle:
    return WindowTitle(environ={"TERM": term, **environ}, folder="project", is_wanted=is_wanted)


def test_a_title_is_set_once_and_cannot_carry_other_sequences() -> None:
    shown = WindowTitle(environ={"TERM": "xterm"}, folder="a\x1b]0;evil\x07", is_wanted=True)
    assert shown.begin().count("\x1b") == 3 and "\x07" not in shown.show("working")
    assert shown.show("working") == ""


@pytest.mark.parametrize("term", ["", "dumb", "linux", "vt100", "screen"])
def test_other_terminals_and_users_who_want_none_get_no_title(term: str) -> None:
    assert title(term).begin() + title(term).show("x") + title(term).end() == ""
    assert title("xterm", is_wanted=False).begin() == ""
    assert title("screen-256color", TMUX="x").begin() != ""


@pytest.mark.slow
@pytest.mark.parametrize("is_wanted", [True, False])
def test_the_title_shows_the_work_and_is_restored(open_terminal: OpenTerminal, is_wanted: bool) -> None:
    terminal = open_terminal(answer("Understood."), AGENT_TERMINAL_TITLE=str(is_wanted).lower())
    terminal.send_line("hello")
    terminal.wait_for("Understood.")
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    raw = terminal.raw_output
    assert ((BEGIN in raw), (f" {WORKING}\x1b\\".encode() in raw), (END in raw)) == (is_wanted,) * 3
    assert raw.rfind(END) == -1 or raw.rfind(END) > raw.rfind(WORKING.encode())


@pytest.mark.slow
def test_urls_are_links_in_a_terminal_that_knows_them_and_never_in_a_pipe(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("See https://example.org/docs for more."), KITTY_WINDOW_ID="1")
    terminal.send_line("where?")
    terminal.wait_for("See https://example.org/docs for more.")
    assert b"\x1b]8;;https://example.org/docs\x1b\\https://example.org/docs\x1b]8;;\x1b\\" in terminal.raw_output
    model = terminal.user.script(answer("See https://example.org/docs for more."))
    piped = terminal.user.agent("run", "--model", model, "where?", TERM="xterm-kitty", KITTY_WINDOW_ID="1")
    assert "https://example.org/docs" in piped.stdout and "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.slow
def test_a_line_typed_before_the_program_has_started_is_sent(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    # The terminal still turns Enter into a line feed.
    terminal.send("hello" + ENTER)
    terminal.wait_for("Understood.")
