"""Resizing the window during a run: no finished line is lost, no stale line is left."""

import random
import re
from collections.abc import Callable, Iterator

import pytest

from cli.repl.start import GREETING
from tests.cli.repl.terminal_session import OpenTerminal
from tests.cli.repl.tmux_session import TmuxSession
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply
from tests.programs import require

pytestmark = pytest.mark.slow
LONG = "; ".join(f"echo a rather long line of output with the number {number}" for number in range(3))
REPLIES = (
    plan(step("a"), step("b"), step("c", "a")),
    step_call("a", "run_command", command=f"{LONG}; sleep 0.4"),
    step_reply("a", "a done", delay_ms=400),
    step_call("b", "run_command", command="echo b starts; sleep 1.2; echo b ends"),
    step_reply("b", "b done"),
    step_reply("c", "c done", delay_ms=600),
    composer_reply("All three are done."),
)
IDLE_PROMPT = re.compile(r"(?m)^>$")
# The lines that remain; which step ends first depends on the schedule.
LASTING = (
    GREETING,
    "> go",
    "1 ┌ ● a  Title of a",
    "└ ○ b  Title of b",
    "2 ─ ● c  Title of c  ← a",
    *(f"a rather long line of output with the number {number}" for number in range(3)),
    "b starts",
    "b ends",
    "✓ a Title of a (0.0s)",
    "✓ b Title of b (0.0s)",
    "✓ c Title of c (0.0s)",
    "All three are done.",
    "· 0.0s · 3 ok",
)


def assert_complete(shown: str) -> None:
    lines = [re.sub(r"\d\.\ds", "0.0s", line.strip()) for line in shown.splitlines()]
    assert [(text, lines.count(text)) for text in LASTING if lines.count(text) != 1] == [], shown


def assert_not_stale(shown: str) -> None:
    stale = [line for line in shown.splitlines() if re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d/\d steps|planning", line)]
    assert not stale, f"{stale} in\n{shown}"
    assert len(IDLE_PROMPT.findall(shown)) == 1, f"more than one prompt in\n{shown}"
    assert len(re.findall(r"· ask ·", shown)) <= 1, f"more than one status in\n{shown}"


@pytest.mark.parametrize("sizes", [((40, 24), (120, 24)), ((80, 8), (80, 30)), ((30, 6), (200, 50), (60, 12))])
def test_a_terminal_that_clips_lines_keeps_finished_lines(
    open_terminal: OpenTerminal, sizes: tuple[tuple[int, int], ...]
) -> None:
    terminal = open_terminal(*REPLIES, columns=80, rows=24)
    terminal.send_line("go")
    terminal.wait_for("b Title of b")
    for columns, rows in sizes:
        terminal.resize(columns, rows)
        terminal.watch(0.25)
    terminal.wait_for("3 ok")
    # The prompt is drawn in a frame after the last line.
    terminal.wait_until(lambda: IDLE_PROMPT.search(terminal.window_text()) is not None, "the prompt")
    # Clipped text is lost for good, so only check for later lines.
    shown = terminal.full_text()
    for text in ("✓ a Title of a", "✓ b Title of b", "✓ c Title of c", "All three are done."):
        assert shown.count(text) == 1, f"{text!r} is not once in\n{shown}"
    assert_not_stale(terminal.window_text())


@pytest.fixture
def open_tmux(user: User) -> Iterator[Callable[..., TmuxSession]]:
    require("tmux")
    opened: list[TmuxSession] = []

    def start(*replies: object, columns: int = 80, rows: int = 24) -> TmuxSession:
        opened.append(TmuxSession(user, model=user.script(*replies), columns=columns, rows=rows))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize("sizes", [((44, 24), (120, 24)), ((80, 10), (80, 30)), ((50, 12), (200, 50), (60, 12))])
def test_a_terminal_that_rewraps_lines_keeps_no_stale_lines(
    open_tmux: Callable[..., TmuxSession], sizes: tuple[tuple[int, int], ...]
) -> None:
    terminal = open_tmux(*REPLIES)
    terminal.wait_ready()
    terminal.send("go")
    terminal.press("Enter")
    terminal.wait_for("b Title of b")
    for columns, rows in sizes:
        terminal.resize(columns, rows)
        terminal.wait_for("steps ·")
    terminal.wait_for("3 ok")
    shown = terminal.wait_for("\n>\n")
    assert_complete(shown)
    assert_not_stale(shown)


@pytest.mark.parametrize("seed", range(2))
def test_constant_resizing_loses_nothing(open_tmux: Callable[..., TmuxSession], seed: int) -> None:
    chance = random.Random(seed)
    terminal = open_tmux(*REPLIES)
    terminal.wait_ready()
    # tmux scrolls lines above empty rows out of the window, with the cursor: fill the window first.
    for _ in range(3):
        terminal.send("/help")
        terminal.press("Enter")
    terminal.wait_for("/help", times=6)
    terminal.send("go")
    terminal.press("Enter")
    while "3 ok" not in terminal.full_text():
        terminal.resize(chance.randint(56, 130), chance.randint(14, 40))
    terminal.resize(100, 40)
    terminal.send("still here")
    shown = terminal.wait_for("> still here")
    assert_complete(shown)
    assert_not_stale(shown.replace("> still here", ">"))


def test_a_wrapped_draft_survives_a_narrower_window(open_tmux: Callable[..., TmuxSession]) -> None:
    terminal = open_tmux(*REPLIES)
    terminal.wait_ready()
    terminal.send("go")
    terminal.press("Enter")
    terminal.wait_for("b Title of b")
    terminal.send("a draft that is long enough to need another row in a narrow window")
    terminal.wait_for("in a narrow window")
    terminal.resize(60, 24)
    terminal.wait_for("row in a narro\nw window")
    terminal.wait_for("3 ok")
    # The prompt is drawn in a frame after the last line.
    shown = terminal.wait_for("> a draft that is")
    assert_complete(shown)
    assert shown.count("> a draft that is") == 1, shown
