"""Windows that change their size in the middle of a run: nothing finished is lost, nothing stale is left."""

import random
import re
from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.repl.tmux_session import TmuxSession
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply
from tests.programs import require

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
LONG = "; ".join(f"echo a rather long line of output with the number {number}" for number in range(3))
REPLIES = (
    plan(step("a"), step("b"), step("c", "a")),
    step_call("a", "run_command", command=f"{LONG}; sleep 0.4"),
    step_reply("a", "a done", delay_ms=400),
    step_call("b", "run_command", command="echo b begins; sleep 1.2; echo b ends"),
    step_reply("b", "b done"),
    step_reply("c", "c done", delay_ms=600),
    composer_reply("All three are done."),
)
# What stays of that run; which step ends first is a matter of the schedule.
LASTING = (
    "Windlass 0.1.0 · /help lists commands, Ctrl-D leaves",
    "> go",
    "1 ┌ ● a  Title of a",
    "└ ○ b  Title of b",
    "2 ─ ● c  Title of c  ← a",
    *(f"a rather long line of output with the number {number}" for number in range(3)),
    "b begins",
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
    assert len(re.findall(r"(?m)^>$", shown)) == 1, f"more than one prompt in\n{shown}"
    assert len(re.findall(r"· ask ·", shown)) <= 1, f"more than one status in\n{shown}"


@pytest.mark.parametrize("sizes", [((40, 24), (120, 24)), ((80, 8), (80, 30)), ((30, 6), (200, 50), (60, 12))])
def test_a_window_that_cuts_lines_keeps_what_is_finished(sit: Open, sizes: tuple[tuple[int, int], ...]) -> None:
    seat = sit(*REPLIES, columns=80, rows=24)
    seat.send_line("go")
    seat.wait_for("b Title of b")
    for columns, rows in sizes:
        seat.resize(columns, rows)
        seat.watch(0.25)
    seat.wait_for("3 ok")
    # What such a window has cut off is gone for good, so only what came later is looked for.
    shown = seat.full_text()
    for text in ("✓ a Title of a", "✓ b Title of b", "✓ c Title of c", "All three are done."):
        assert shown.count(text) == 1, f"{text!r} is not once in\n{shown}"
    assert_not_stale(seat.window_text())


@pytest.fixture
def at_tmux(user: User) -> Iterator[Callable[..., TmuxSession]]:
    require("tmux")
    seats: list[TmuxSession] = []

    def sit_down(*replies: object, columns: int = 80, rows: int = 24) -> TmuxSession:
        seats.append(TmuxSession(user, model=user.script(*replies), columns=columns, rows=rows))
        return seats[-1]

    yield sit_down
    for seat in seats:
        seat.close()


@pytest.mark.parametrize("sizes", [((44, 24), (120, 24)), ((80, 10), (80, 30)), ((50, 12), (200, 50), (60, 12))])
def test_a_window_that_breaks_lines_is_left_without_stale_ones(
    at_tmux: Callable[..., TmuxSession], sizes: tuple[tuple[int, int], ...]
) -> None:
    seat = at_tmux(*REPLIES)
    seat.wait_for("Ctrl-D leaves")
    seat.send("go")
    seat.press("Enter")
    seat.wait_for("b Title of b")
    for columns, rows in sizes:
        seat.resize(columns, rows)
        seat.wait_for("steps ·")
    shown = seat.wait_for("3 ok")
    assert_complete(shown)
    assert_not_stale(shown)


@pytest.mark.parametrize("seed", range(2))
def test_a_window_that_never_stands_still_loses_nothing(at_tmux: Callable[..., TmuxSession], seed: int) -> None:
    chance = random.Random(seed)
    seat = at_tmux(*REPLIES)
    seat.wait_for("Ctrl-D leaves")
    # tmux pushes what stands above empty rows out of the window, the cursor too: only a full window has none below.
    for _ in range(3):
        seat.send("/help")
        seat.press("Enter")
    seat.wait_for("/help", times=6)
    seat.send("go")
    seat.press("Enter")
    while "3 ok" not in seat.full_text():
        seat.resize(chance.randint(56, 130), chance.randint(14, 40))
    seat.resize(100, 40)
    seat.send("still here")
    shown = seat.wait_for("> still here")
    assert_complete(shown)
    assert_not_stale(shown.replace("> still here", ">"))


def test_a_draft_that_is_wrapped_survives_a_narrower_window(at_tmux: Callable[..., TmuxSession]) -> None:
    seat = at_tmux(*REPLIES)
    seat.wait_for("Ctrl-D leaves")
    seat.send("go")
    seat.press("Enter")
    seat.wait_for("b Title of b")
    seat.send("a draft that is long enough to need another row in a narrow window")
    seat.wait_for("in a narrow window")
    seat.resize(60, 24)
    seat.wait_for("row in a narro\nw window")
    shown = seat.wait_for("3 ok")
    assert_complete(shown)
    assert shown.count("> a draft that is") == 1, shown
