"""`agent run` on a terminal: the transcript and live area of the REPL, or plain lines."""

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import TerminalSession, ctrl
from tests.cli.repl.ui.test_resizing import LASTING, REPLIES
from tests.cli.terminal_user import User, one_step, plan, step_reply

pytestmark = pytest.mark.slow
Run = Callable[..., TerminalSession]
LIVE = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d/\d steps")


@pytest.fixture
def run(user: User) -> Iterator[Run]:
    opened: list[TerminalSession] = []

    def start(*flags: str, **options: object) -> TerminalSession:
        model = user.script(*REPLIES)
        opened.append(TerminalSession(user, "run", *flags, "go", model=model, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def test_a_run_is_animated_and_leaves_its_transcript_and_answer(run: Run) -> None:
    terminal = run()
    terminal.wait_for("b Title of b")
    terminal.wait_until(lambda: bool(LIVE.search(terminal.window_text())), "the live area")
    assert terminal.wait_exit() == 0
    lines = [re.sub(r"\d\.\ds", "0.0s", line.strip()) for line in terminal.full_text().splitlines()]
    expected = [text for text in LASTING if not text.startswith(("Windlass", "> "))]
    assert [(text, lines.count(text)) for text in expected if lines.count(text) != 1] == []
    assert not LIVE.search(terminal.full_text())


def test_resizing_the_window_leaves_no_stale_lines(run: Run) -> None:
    terminal = run(columns=100)
    terminal.wait_for("b Title of b")
    for columns, rows in ((40, 24), (70, 6), (120, 30)):
        terminal.resize(columns, rows)
        terminal.watch(0.2)
    assert terminal.wait_exit() == 0
    assert not LIVE.search(terminal.full_text()), terminal.full_text()
    assert terminal.full_text().count("All three are done.") == 1


@pytest.mark.parametrize(("flags", "environ"), [(("--plain",), {}), ((), {"TERM": "dumb"})])
def test_plain_progress_redraws_nothing(run: Run, flags: tuple[str, ...], environ: dict[str, str]) -> None:
    terminal = run(*flags, **environ)
    assert terminal.wait_exit() == 0
    assert b"\x1b" not in terminal.raw_output
    assert "a: ok in" in terminal.full_text() and "All three are done." in terminal.full_text()


def test_a_terminal_without_unicode_gets_ascii_marks(run: Run) -> None:
    terminal = run(LANG="C")
    assert terminal.wait_exit() == 0
    assert terminal.raw_output.isascii()
    assert "+ a Title of a" in terminal.full_text()


def test_without_a_terminal_nothing_is_drawn(user: User) -> None:
    model = user.script(*REPLIES)
    ended = user.agent("run", "--model", model, "go", TERM="xterm-256color", LANG="C.UTF-8")
    assert (ended.exit_code, ended.stdout) == (0, "All three are done.\n")
    assert "\x1b" not in ended.stderr and "a: ok in" in ended.stderr


def test_the_answer_is_rendered_as_in_the_repl_above_the_last_line(user: User) -> None:
    model = user.script({"match": {"purpose": "planner"}, "text": '{"answer": "There are **4 orders**."}'})
    terminal = TerminalSession(user, "run", "count", model=model)
    assert terminal.wait_exit() == 0
    *folder, answer, _, end = terminal.full_text().strip().splitlines()
    assert folder[0].startswith("in ")
    assert answer == "There are 4 orders." and end.startswith("· ")


def test_a_pipe_gets_the_raw_answer(user: User) -> None:
    model = user.script({"match": {"purpose": "planner"}, "text": '{"answer": "There are **4 orders**."}'})
    program = ["sh", "-c", f"{shlex.join(user.command('run', 'count'))} | cat"]
    terminal = TerminalSession(user, program=program, model=model)
    assert terminal.wait_exit() == 0
    assert "There are **4 orders**." in terminal.full_text()


def test_the_answer_streams_to_the_terminal_and_is_printed_once(user: User) -> None:
    said = step_reply("s1", "The first part.\n\nThe second part.", chunks=30, chunk_delay_ms=100)
    terminal = TerminalSession(user, "run", "count", model=user.script(*one_step(said)))
    shown = terminal.wait_for("The first part.")
    assert "The second part." not in shown
    assert terminal.wait_exit() == 0
    shown = terminal.full_text()
    assert (shown.count("The first part."), shown.count("The second part.")) == (1, 1)
    assert shown.index("The second part.") < shown.index("· ")


@pytest.mark.parametrize("flags", [(), ("--plain",)])
def test_after_ctrl_c_at_a_question_the_ending_has_lines_of_its_own(user: User, flags: tuple[str, ...]) -> None:
    model = user.script(plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}))
    terminal = TerminalSession(user, "run", *flags, "go", model=model)
    terminal.wait_for("your answer:")
    terminal.pause()
    terminal.send(ctrl("c"))
    assert terminal.wait_exit() == 130
    (line,) = (line for line in terminal.full_text().splitlines() if line.startswith("your answer:"))
    assert line.replace("^C", "").strip() == "your answer:"
