"""Whole screens at three widths, compared with the ones that were found good."""

import re
from collections.abc import Callable

import pytest

from cli.repl.commands.builtin import COMMANDS
from tests.cli.repl.screens import looks_as_before
from tests.cli.repl.terminal_session import Seat
from tests.cli.terminal_user import calls, composes, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
WIDTHS = (40, 80, 200)
ANSWER = """\
# What was done

The numbers are **right**, and *漢字* are as wide as they should be.

- one thing
- another, which is described at some length so that it needs a second line on any screen but the widest

| name | value |
|---|---|
| first | 1 |
| second | 22 |

```python
def answer() -> int:
    return 42
```
"""
NUMBERS = "for n in 1 2 3 4 5 6; do echo number $n of six; done"
REPLIES = (
    plan(step("count"), step("write", "count"), step("push", "write")),
    calls("count", "run_command", command=NUMBERS),
    says("count", "counted"),
    calls("write", "write_file", path="notes.md", content="# Notes\n\nfirst\nsecond\n"),
    says("write", "written"),
    calls("push", "run_command", command="git push --dry-run origin main"),
    says("push", "pushed", delay_ms=200),
    composes(ANSWER),
)


def opened(sit: Open, columns: int) -> Seat:
    seat = sit(*REPLIES, columns=columns, rows=45, AGENT_APPROVAL_MODE="auto-edit")
    seat.sees("Windlass")
    return seat


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_run_looks_as_it_should(sit: Open, columns: int) -> None:
    seat = opened(sit, columns)
    seat.says("count, write and push")
    seat.sees("✓ write Title of write")
    seat.sees("[n] no")
    looks_as_before(f"asked-{columns}", without_status(seat.settles()))
    seat.types("n")
    seat.sees("go on with")
    looks_as_before(f"ended-{columns}", without_status(seat.settled()))


def without_status(screen: str) -> str:
    """Leave out what names a temporary folder."""
    screen = re.sub(r"(?ms)^  in /.*?(?=^  because)", "  in /the/project\n", screen)
    return "\n".join(line for line in screen.splitlines() if not line.startswith("script:"))


def test_the_help_breaks_no_word_however_narrow_the_window_is(sit: Open) -> None:
    seat = sit(REPLIES[-1], columns=40, rows=24)
    seat.says("/help")
    shown = " ".join(seat.sees("something.").split())
    for command in COMMANDS:
        assert command.help in shown
