"""Whole screens at three widths, compared with the ones that were found good."""

import re
from collections.abc import Callable

import pytest

from cli.repl.commands.builtin import COMMANDS
from tests.cli.repl.screens import assert_matches_snapshot
from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import composer_reply, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
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
    step_call("count", "run_command", command=NUMBERS),
    step_reply("count", "counted"),
    step_call("write", "write_file", path="notes.md", content="# Notes\n\nfirst\nsecond\n"),
    step_reply("write", "written"),
    step_call("push", "run_command", command="git push --dry-run origin main"),
    step_reply("push", "pushed", delay_ms=200),
    composer_reply(ANSWER),
)


def open_session(sit: Open, columns: int) -> TerminalSession:
    seat = sit(*REPLIES, columns=columns, rows=45, AGENT_APPROVAL_MODE="auto-edit")
    seat.wait_for("Windlass")
    return seat


@pytest.mark.parametrize("columns", WIDTHS)
@needs("bwrap")
def test_a_run_looks_as_it_should(sit: Open, columns: int) -> None:
    seat = open_session(sit, columns)
    seat.send_line("count, write and push")
    seat.wait_for("✓ write Title of write")
    seat.wait_for("[n] no")
    assert_matches_snapshot(f"asked-{columns}", without_status(seat.pause()))
    seat.send("n")
    seat.wait_for("go on with")
    assert_matches_snapshot(f"ended-{columns}", without_status(seat.wait_stable()))


def without_status(screen: str) -> str:
    """Leave out what names a temporary folder."""
    screen = re.sub(r"(?ms)^  in /.*?(?=^  because)", "  in /the/project\n", screen)
    return "\n".join(line for line in screen.splitlines() if not line.startswith("script:"))


def test_the_help_breaks_no_word_however_narrow_the_window_is(sit: Open) -> None:
    seat = sit(REPLIES[-1], columns=40, rows=24)
    seat.send_line("/help")
    shown = " ".join(seat.wait_for("something.").split())
    for command in COMMANDS:
        assert command.help in shown
