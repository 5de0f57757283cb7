"""Notifications go outside the window and are never printed."""

import re
import sys

import pytest

from agent.protocol.events import RunCompleted
from cli.repl.ui import notifications
from cli.repl.ui.approval_cards import DENY_HINT, QUESTION_HINT
from cli.repl.ui.notifications import notification_for
from tests.cli.repl.terminal_session import OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.terminal_user import answer, one_step, plan, step_call, step_reply

slow = pytest.mark.slow
NEEDED, DONE, FAILED = (
    f"\x1b]9;{text}\x07\x07".encode() for text in (notifications.NEEDS_ANSWER, notifications.DONE, notifications.FAILED)
)
# The real program with a shorter threshold for long runs.
IMPATIENT = (
    "import cli.repl.ui.notifications; cli.repl.ui.notifications._LONG_S = 0.8; from cli.main import main; main()"
)
ASKS = plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"})


def open_session(open_terminal: OpenTerminal, *replies: object, **environ: str) -> TerminalSession:
    return open_terminal(*replies, program=[sys.executable, "-c", IMPATIENT], **environ)


def received(terminal: TerminalSession) -> list[bytes]:
    return re.findall(rb"\x1b\]9;[^\x07]*\x07\x07|\x07", terminal.raw_output)


def expect_notifications(terminal: TerminalSession, *expected: bytes) -> None:
    """Wait for exactly these notifications, in this order."""
    terminal.wait_until(lambda: len(received(terminal)) >= len(expected), "the notifications")
    assert received(terminal) == list(expected)
    assert notifications.NEEDS_ANSWER not in terminal.full_text()


@slow
def test_questions_and_the_end_of_long_runs_notify_the_user(
    open_terminal: OpenTerminal,
) -> None:
    terminal = open_session(
        open_terminal,
        reply_to("ask", ASKS),
        reply_to("quick", answer("At once.")),
        *one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "pushed", delay_ms=900)),
    )
    terminal.send_line("push")
    terminal.wait_for(DENY_HINT)
    expect_notifications(terminal, NEEDED)
    terminal.pause()
    terminal.send("n")
    terminal.wait_for("because you declined")
    expect_notifications(terminal, NEEDED, FAILED)
    terminal.send_line("quick")
    terminal.wait_for("At once.")
    terminal.wait_stable()
    expect_notifications(terminal, NEEDED, FAILED)
    terminal.send_line("ask")
    terminal.wait_for(QUESTION_HINT)
    expect_notifications(terminal, NEEDED, FAILED, NEEDED)
    terminal.send(ctrl("c"))
    terminal.wait_for("stopped by you")


@slow
@pytest.mark.parametrize("term", ["linux", "dumb"])
def test_a_terminal_that_would_print_the_notification_gets_only_the_bell(
    open_terminal: OpenTerminal, term: str
) -> None:
    terminal = open_session(
        open_terminal, reply_to("ask", ASKS), *one_step(step_reply("s1", "Slow.", delay_ms=900)), TERM=term
    )
    terminal.wait_ready()
    terminal.send("go\r")
    terminal.wait_for("1 ok")
    expect_notifications(terminal, b"\x07")
    terminal.send("ask\r")
    terminal.wait_for("Which?")
    terminal.pause()
    expect_notifications(terminal, b"\x07", b"\x07")


@pytest.mark.parametrize(("duration_ms", "expected"), [(9_999, b""), (10_000, DONE)])
def test_only_long_runs_notify(duration_ms: int, expected: bytes) -> None:
    end = RunCompleted(subtype="success", is_error=False, exit_code=0, result="x", duration_ms=duration_ms)
    assert notification_for(end, term="xterm").encode() == expected
