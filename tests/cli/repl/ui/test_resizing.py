"""Windows that change their size in the middle of a run: nothing finished is lost, nothing stale is left."""

import random
import re
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.cli.repl.terminal_session import Seat
from tests.cli.repl.tmux_session import TmuxSeat
from tests.cli.terminal_user import User, calls, composes, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
LONG = "; ".join(f"echo a rather long line of output with the number {number}" for number in range(3))
REPLIES = (
    plan(step("a"), step("b"), step("c", "a")),
    calls("a", "run_command", command=f"{LONG}; sleep 0.4"),
    says("a", "a done", delay_ms=400),
    calls("b", "run_command", command="echo b begins; sleep 1.2; echo b ends"),
    says("b", "b done"),
    says("c", "c done", delay_ms=600),
    composes("All three are done."),
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


def stays_complete(shown: str) -> None:
    lines = [re.sub(r"\d\.\ds", "0.0s", line.strip()) for line in shown.splitlines()]
    assert [(text, lines.count(text)) for text in LASTING if lines.count(text) != 1] == [], shown


def nothing_is_stale(shown: str) -> None:
    stale = [line for line in shown.splitlines() if re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d/\d steps|planning", line)]
    assert not stale, f"{stale} in\n{shown}"
    assert len(re.findall(r"(?m)^>$", shown)) == 1, f"more than one prompt in\n{shown}"
    assert len(re.findall(r"· ask ·", shown)) <= 1, f"more than one status in\n{shown}"


@pytest.mark.parametrize("sizes", [((40, 24), (120, 24)), ((80, 8), (80, 30)), ((30, 6), (200, 50), (60, 12))])
def test_a_window_that_cuts_lines_keeps_what_is_finished(sit: Open, sizes: tuple[tuple[int, int], ...]) -> None:
    seat = sit(*REPLIES, columns=80, rows=24)
    seat.says("go")
    seat.sees("b Title of b")
    for columns, rows in sizes:
        seat.resizes(columns, rows)
        seat.watches(0.25)
    seat.sees("3 ok")
    # What such a window has cut off is gone for good, so only what came later is looked for.
    shown = seat.all()
    for text in ("✓ a Title of a", "✓ b Title of b", "✓ c Title of c", "All three are done."):
        assert shown.count(text) == 1, f"{text!r} is not once in\n{shown}"
    nothing_is_stale(seat.window())


@pytest.fixture
def at_tmux(user: User) -> Iterator[Callable[..., TmuxSeat]]:
    assert shutil.which("tmux"), "tmux is needed"
    seats: list[TmuxSeat] = []

    def sit_down(*replies: object, columns: int = 80, rows: int = 24) -> TmuxSeat:
        seats.append(TmuxSeat(user, model=user.script(*replies), columns=columns, rows=rows))
        return seats[-1]

    yield sit_down
    for seat in seats:
        seat.close()


@pytest.mark.parametrize("sizes", [((44, 24), (120, 24)), ((80, 10), (80, 30)), ((50, 12), (200, 50), (60, 12))])
def test_a_window_that_breaks_lines_is_left_without_stale_ones(
    at_tmux: Callable[..., TmuxSeat], sizes: tuple[tuple[int, int], ...]
) -> None:
    seat = at_tmux(*REPLIES)
    seat.sees("Ctrl-D leaves")
    seat.types("go")
    seat.presses("Enter")
    seat.sees("b Title of b")
    for columns, rows in sizes:
        seat.resizes(columns, rows)
        seat.sees("steps ·")
    shown = seat.sees("3 ok")
    stays_complete(shown)
    nothing_is_stale(shown)


@pytest.mark.parametrize("seed", range(2))
def test_a_window_that_never_stands_still_loses_nothing(at_tmux: Callable[..., TmuxSeat], seed: int) -> None:
    chance = random.Random(seed)
    seat = at_tmux(*REPLIES)
    seat.sees("Ctrl-D leaves")
    # tmux pushes what stands above empty rows out of the window, the cursor too: only a full window has none below.
    for _ in range(3):
        seat.types("/help")
        seat.presses("Enter")
    seat.sees("/help", times=6)
    seat.types("go")
    seat.presses("Enter")
    while "3 ok" not in seat.all():
        seat.resizes(chance.randint(56, 130), chance.randint(14, 40))
    seat.resizes(100, 40)
    seat.types("still here")
    shown = seat.sees("> still here")
    stays_complete(shown)
    nothing_is_stale(shown.replace("> still here", ">"))


def test_a_draft_that_is_wrapped_survives_a_narrower_window(at_tmux: Callable[..., TmuxSeat]) -> None:
    seat = at_tmux(*REPLIES)
    seat.sees("Ctrl-D leaves")
    seat.types("go")
    seat.presses("Enter")
    seat.sees("b Title of b")
    seat.types("a draft that is long enough to need another row in a narrow window")
    seat.sees("in a narrow window")
    seat.resizes(60, 24)
    seat.sees("row in a narro\nw window")
    shown = seat.sees("3 ok")
    stays_complete(shown)
    assert shown.count("> a draft that is") == 1, shown
