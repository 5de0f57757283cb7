"""Complete screens at three widths, compared with golden screens."""

import re

import pytest

from cli.repl.commands.builtin import COMMANDS, KEY_HELP
from cli.repl.ui.approval_cards import DENY_HINT
from tests.cli.repl.screens import assert_matches_snapshot
from tests.cli.repl.terminal_session import OpenTerminal, TerminalSession
from tests.cli.terminal_user import composer_reply, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow
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


def open_session(open_terminal: OpenTerminal, columns: int) -> TerminalSession:
    terminal = open_terminal(*REPLIES, columns=columns, rows=45, AGENT_APPROVAL_MODE="auto-edit")
    terminal.wait_for("Windlass")
    return terminal


@pytest.mark.parametrize("columns", WIDTHS)
@needs("bwrap")
def test_a_run_matches_the_golden_screens(open_terminal: OpenTerminal, columns: int) -> None:
    terminal = open_session(open_terminal, columns)
    terminal.send_line("count, write and push")
    terminal.wait_for("✓ write Title of write")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    assert_matches_snapshot(f"asked-{columns}", without_status(terminal.window_text()))
    terminal.send("n")
    terminal.wait_for("because you declined")
    assert_matches_snapshot(f"ended-{columns}", without_status(terminal.wait_stable()))


def without_status(screen: str) -> str:
    """Remove everything that names a temporary folder."""
    screen = re.sub(r"(?ms)^  in /.*?(?=^  because)", "  in /the/project\n", screen)
    return "\n".join(line for line in screen.splitlines() if not line.startswith("script:"))


def test_help_wraps_at_word_boundaries_in_a_narrow_window(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(REPLIES[-1], columns=40, rows=24)
    terminal.send_line("/help")
    shown = " ".join(terminal.wait_for(KEY_HELP[-1].split()[-1]).split())
    for command in COMMANDS:
        assert command.help in shown
