"""Terminals and windows as they are: narrow, tiny, without colour or Unicode, slow, and with text of any width."""

import re
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, ctrl
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import answer, composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m")
FRAME = b"\x1b[?2026h"
FOUR = (
    plan(*(step(f"s{number}") for number in range(4)), step("last", *(f"s{number}" for number in range(4)))),
    *(step_reply(f"s{number}", f"part {number}", delay_ms=100 + 150 * number) for number in range(4)),
    step_call("last", "run_command", command="seq 5"),
    step_reply("last", "done"),
    composer_reply("That is all, 漢字 and e\u0301."),
)


def run_request(seat: TerminalSession, mark: str = "✓") -> str:
    seat.wait_for(">")
    seat.send("go" + ENTER)
    seat.wait_for(f"{mark} last")
    return seat.wait_stable()


@pytest.mark.parametrize("environ", [{"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}])
def test_a_terminal_without_unicode_gets_marks_it_can_show(sit: Open, environ: dict[str, str]) -> None:
    seat = sit(*FOUR, **environ)
    shown = run_request(seat, mark="+")
    assert "~ 2 more lines (Ctrl-O)" in shown
    seat.send("d\u00e9j\u00e0 vu")
    seat.wait_for("vu")
    seat.send(ctrl("c") + ctrl("d"))
    assert seat.wait_exit() == 0
    ours = re.sub("[漢字e\u0301\u00e9\u00e0]", "", seat.raw_output.decode())
    assert ours.isascii(), [mark for mark in ours if not mark.isascii()]
    assert "Traceback" not in ours


def test_no_colour_is_used_where_none_is_wanted(sit: Open) -> None:
    seat = sit(*FOUR)
    run_request(seat)
    seat.send("/mo")
    seat.wait_for("Show or choose the model.")
    assert not COLOUR.findall(seat.raw_output)


@pytest.mark.parametrize(("background", "accent"), [("15;0", b"\x1b[36m"), ("0;15", b"\x1b[34m")])
def test_the_colours_fit_the_ground(sit: Open, background: str, accent: bytes) -> None:
    seat = sit(*FOUR, NO_COLOR="", COLORFGBG=background)
    run_request(seat)
    assert accent in seat.raw_output
    other = b"\x1b[34m" if accent == b"\x1b[36m" else b"\x1b[36m"
    assert other not in seat.raw_output


@pytest.mark.parametrize("size", [(40, 5), (200, 50), (12, 3), (0, 0)])
def test_a_window_of_any_size_shows_all_that_stays(sit: Open, size: tuple[int, int]) -> None:
    columns, rows = size
    seat = sit(*FOUR, columns=columns, rows=rows)
    words = " ".join(run_request(seat).split())
    for number in range(4):
        assert re.search(rf"✓ s{number} Title of s{number} \(", words), words
    assert "too small" not in words
    seat.send("next")
    seat.wait_for("> next")


def test_nobody_who_looks_on_gets_more_than_ten_frames_a_second(sit: Open) -> None:
    text = "A sentence of the answer, as it comes. " * 20
    seat = sit(*one_step(step_reply("s1", text, chunks=200, chunk_delay_ms=10)))
    seat.wait_for("Ctrl-D leaves")
    seat.send("go" + ENTER)
    seat.wait_for("s1 Title of s1")
    before = seat.raw_output.count(FRAME)
    seat.watch(1.5)
    frames = seat.raw_output.count(FRAME) - before
    assert 5 <= frames <= 16, frames


def test_a_huge_paste_is_a_few_words_in_the_prompt_and_whole_in_the_request(sit: Open) -> None:
    book = "".join(f"line {number} of a long text\n" for number in range(4000))
    seat = sit(answer("Read."))
    seat.wait_for("Ctrl-D leaves")
    seat.send("sum up \x1b[200~")
    for start in range(0, len(book), 4000):
        seat.send(book[start : start + 4000])
        seat.read()
    seat.send("\x1b[201~")
    seat.wait_for("> sum up [paste 1: 4,001 lines]")
    seat.send(ENTER)
    shown = seat.wait_for("Read.")
    assert request(seat) == f"sum up {book}".strip()
    assert "… 3,980 more lines" in shown


def test_a_huge_output_is_folded_and_can_be_paged(sit: Open) -> None:
    loud = step_call("s1", "run_command", command="seq 200000")
    seat = sit(
        *one_step(loud, step_call("s1", "run_command", command="seq 7 20"), step_reply("s1", "done")), PAGER="head -n 4"
    )
    seat.wait_for("Ctrl-D leaves")
    seat.send("count" + ENTER)
    seat.wait_for("1 ok")
    seat.send(ctrl("o"))
    shown = seat.wait_for("──────── s1 $ seq 7 20")
    assert shown.index("seq 200000") < shown.index("──────── s1 $ seq 7 20")
    seat.send_line("/exit")
    assert seat.wait_exit() == 0


def test_keys_that_are_no_text_are_kept_out_of_the_log(sit: Open) -> None:
    seat = sit(answer("Understood."))
    seat.wait_for("Ctrl-D leaves")
    seat.child.send(b"broken \xff byte\r")
    seat.wait_for("Understood.")
    assert request(seat) == "broken ? byte"
