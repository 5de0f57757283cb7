"""Difficult terminals: tiny windows, no colors, no Unicode, huge pastes and outputs."""

import re
import time

import pytest

from tests.cli.repl.terminal_session import ENTER, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.ui.test_input import MODEL_HELP, request
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
COLOR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m")
FRAME = b"\x1b[?2026h"
FOUR = (
    plan(*(step(f"s{number}") for number in range(4)), step("last", *(f"s{number}" for number in range(4)))),
    *(step_reply(f"s{number}", f"part {number}", delay_ms=100 + 150 * number) for number in range(4)),
    step_call("last", "run_command", command="seq 5"),
    step_reply("last", "done"),
    composer_reply("That is all, 漢字 and e\u0301."),
)


def run_request(terminal: TerminalSession, mark: str = "✓") -> str:
    terminal.wait_for(">")
    terminal.send("go" + ENTER)
    terminal.wait_for(f"{mark} last")
    return terminal.wait_stable()


@pytest.mark.parametrize("environ", [{"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}])
def test_a_terminal_without_unicode_gets_ascii_marks(open_terminal: OpenTerminal, environ: dict[str, str]) -> None:
    terminal = open_terminal(*FOUR, **environ)
    shown = run_request(terminal, mark="+")
    assert "~ 2 lines above (Ctrl-O)" in shown
    terminal.send("d\u00e9j\u00e0 vu")
    terminal.wait_for("vu")
    terminal.send(ctrl("c") + ctrl("d"))
    assert terminal.wait_exit() == 0
    ours = re.sub("[漢字e\u0301\u00e9\u00e0]", "", terminal.raw_output.decode())
    assert ours.isascii(), [mark for mark in ours if not mark.isascii()]
    assert "Traceback" not in ours


def test_no_color_disables_all_colors(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*FOUR)
    run_request(terminal)
    terminal.send("/mo")
    terminal.wait_for(MODEL_HELP)
    assert not COLOR.findall(terminal.raw_output)


@pytest.mark.parametrize(("background", "accent"), [("15;0", b"\x1b[36m"), ("0;15", b"\x1b[34m")])
def test_the_theme_matches_the_background(open_terminal: OpenTerminal, background: str, accent: bytes) -> None:
    terminal = open_terminal(*FOUR, NO_COLOR="", COLORFGBG=background)
    run_request(terminal)
    assert accent in terminal.raw_output
    other = b"\x1b[34m" if accent == b"\x1b[36m" else b"\x1b[36m"
    assert other not in terminal.raw_output


@pytest.mark.parametrize("size", [(40, 5), (200, 50), (12, 3), (0, 0)])
def test_a_window_of_any_size_shows_all_finished_lines(open_terminal: OpenTerminal, size: tuple[int, int]) -> None:
    columns, rows = size
    terminal = open_terminal(*FOUR, columns=columns, rows=rows)
    words = " ".join(run_request(terminal).split())
    for number in range(4):
        assert re.search(rf"✓ s{number} Title of s{number} \(", words), words
    assert "too small" not in words
    terminal.send("next")
    terminal.wait_for("> next")


def test_a_streaming_answer_is_drawn_at_most_ten_times_per_second(open_terminal: OpenTerminal) -> None:
    text = "A sentence of the answer, as it comes. " * 20
    terminal = open_terminal(*one_step(step_reply("s1", text, chunks=200, chunk_delay_ms=10)))
    terminal.wait_ready()
    terminal.send("go" + ENTER)
    terminal.wait_for("s1 Title of s1")
    before, started = terminal.raw_output.count(FRAME), time.monotonic()
    terminal.watch(1.5)
    frames, seconds = terminal.raw_output.count(FRAME) - before, time.monotonic() - started
    assert 1 <= frames <= 10 * seconds + 2, (frames, seconds)


def test_thoughts_are_live_lines_and_then_folded(open_terminal: OpenTerminal) -> None:
    thoughts = "I wonder about the weather. " * 3
    reply = step_reply("s1", "It rains.", reasoning=thoughts, chunks=3, chunk_delay_ms=700)
    terminal = open_terminal(*one_step(reply))
    terminal.wait_ready()
    terminal.send("go" + ENTER)
    terminal.wait_for("    I wonder about the weather.")
    terminal.wait_for("s1: thought for")
    shown = terminal.wait_for("It rains.")
    terminal.wait_for("✓ s1")
    assert "I wonder" not in terminal.window_text()
    assert "It rains." in shown


def test_a_huge_paste_is_a_placeholder_in_the_prompt_and_complete_in_the_request(open_terminal: OpenTerminal) -> None:
    book = "".join(f"line {number} of a long text\n" for number in range(4000))
    terminal = open_terminal(answer("Read."))
    terminal.wait_ready()
    terminal.send("sum up \x1b[200~")
    for start in range(0, len(book), 4000):
        terminal.send(book[start : start + 4000])
        terminal.read()
    terminal.send("\x1b[201~")
    terminal.wait_for("> sum up [paste 1: 4,001 lines]")
    terminal.send(ENTER)
    shown = terminal.wait_for("Read.")
    assert request(terminal) == f"sum up {book}".strip()
    assert "… 3,980 more lines" in shown


def test_a_huge_output_is_folded_and_can_be_paged(open_terminal: OpenTerminal) -> None:
    loud = step_call("s1", "run_command", command="seq 200000")
    terminal = open_terminal(
        *one_step(loud, step_call("s1", "run_command", command="seq 7 20"), step_reply("s1", "done")), PAGER="head -n 4"
    )
    terminal.wait_ready()
    terminal.send("count" + ENTER)
    terminal.wait_for("1 ok")
    terminal.send(ctrl("o"))
    shown = terminal.wait_for("──────── s1 $ seq 7 20")
    assert shown.index("seq 200000") < shown.index("──────── s1 $ seq 7 20")
    terminal.send_line("/exit")
    assert terminal.wait_exit() == 0


def test_invalid_utf8_is_replaced_before_it_is_logged(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.child.send(b"broken \xff byte\r")
    terminal.wait_for("Understood.")
    assert request(terminal) == "broken ? byte"
