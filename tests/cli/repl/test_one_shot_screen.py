"""`agent run` on a terminal: the same transcript and live area as in the prompt, or lines where those cannot be."""

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.repl.ui.test_resizing import LASTING, REPLIES
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow
Run = Callable[..., TerminalSession]
LIVE = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d/\d steps")


@pytest.fixture
def run(user: User) -> Iterator[Run]:
    seats: list[TerminalSession] = []

    def start(*flags: str, **how: object) -> TerminalSession:
        model = user.script(*REPLIES)
        seats.append(TerminalSession(user, "run", *flags, "go", model=model, **how))  # type: ignore[arg-type]
        return seats[-1]

    yield start
    for seat in seats:
        seat.close()


def test_a_run_moves_while_it_goes_on_and_leaves_its_transcript_and_answer(run: Run) -> None:
    seat = run()
    seat.wait_for("b Title of b")
    seat.wait_until(lambda: bool(LIVE.search(seat.window_text())), "the live area")
    assert seat.wait_exit() == 0
    lines = [re.sub(r"\d\.\ds", "0.0s", line.strip()) for line in seat.full_text().splitlines()]
    expected = [text for text in LASTING if not text.startswith(("Windlass", "> "))]
    assert [(text, lines.count(text)) for text in expected if lines.count(text) != 1] == []
    assert not LIVE.search(seat.full_text())


def test_a_window_that_changes_its_size_leaves_nothing_stale(run: Run) -> None:
    seat = run(columns=100)
    seat.wait_for("b Title of b")
    for columns, rows in ((40, 24), (70, 6), (120, 30)):
        seat.resize(columns, rows)
        seat.watch(0.2)
    assert seat.wait_exit() == 0
    assert not LIVE.search(seat.full_text()), seat.full_text()
    assert seat.full_text().count("All three are done.") == 1


@pytest.mark.parametrize(("flags", "environ"), [(("--plain",), {}), ((), {"TERM": "dumb"})])
def test_plain_progress_is_lines_and_nothing_is_redrawn(
    run: Run, flags: tuple[str, ...], environ: dict[str, str]
) -> None:
    seat = run(*flags, **environ)
    assert seat.wait_exit() == 0
    assert b"\x1b" not in seat.raw_output
    assert "a: ok in" in seat.full_text() and "All three are done." in seat.full_text()


def test_a_terminal_without_unicode_gets_marks_it_can_show(run: Run) -> None:
    seat = run(LANG="C")
    assert seat.wait_exit() == 0
    assert seat.raw_output.isascii()
    assert "+ a Title of a" in seat.full_text()


def test_without_a_terminal_nothing_is_drawn(user: User) -> None:
    model = user.script(*REPLIES)
    ended = user.agent("run", "--model", model, "go", TERM="xterm-256color", LANG="C.UTF-8")
    assert (ended.exit_code, ended.stdout) == (0, "All three are done.\n")
    assert "\x1b" not in ended.stderr and "a: ok in" in ended.stderr


def test_the_answer_is_laid_out_as_at_the_prompt_and_stands_above_the_last_line(user: User) -> None:
    model = user.script({"match": {"purpose": "planner"}, "text": '{"answer": "There are **4 orders**."}'})
    seat = TerminalSession(user, "run", "count", model=model)
    assert seat.wait_exit() == 0
    answer, end = seat.full_text().strip().splitlines()
    assert answer == "There are 4 orders." and end.startswith("· ")


def test_a_pipe_gets_the_answer_as_it_is(user: User) -> None:
    model = user.script({"match": {"purpose": "planner"}, "text": '{"answer": "There are **4 orders**."}'})
    program = ["sh", "-c", f"{shlex.join(user.command('run', 'count'))} | cat"]
    seat = TerminalSession(user, program=program, model=model)
    assert seat.wait_exit() == 0
    assert "There are **4 orders**." in seat.full_text()
