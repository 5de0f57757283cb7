"""Signs for a person who looks elsewhere: heard and shown outside of the window, and never on the screen."""

import re
import sys
from collections.abc import Callable

import pytest

from agent.protocol.events import RunCompleted
from cli.repl.ui.notifications import notification_for
from tests.cli.repl.terminal_session import TerminalSession, ctrl
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.terminal_user import answer, one_step, plan, step_call, step_reply

Open = Callable[..., TerminalSession]
slow = pytest.mark.slow
NEEDED, DONE, FAILED = (
    f"\x1b]9;{text}\x07\x07".encode() for text in ("Windlass needs an answer", "Windlass: done", "Windlass: failed")
)
# The real program, only that a run is long which took as long as this test can wait.
IMPATIENT = (
    "import cli.repl.ui.notifications; cli.repl.ui.notifications._LONG_S = 0.8; from cli.main import main; main()"
)
ASKS = plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"})


def open_session(sit: Open, *replies: object, **environ: str) -> TerminalSession:
    return sit(*replies, program=[sys.executable, "-c", IMPATIENT], **environ)


def notifications(seat: TerminalSession) -> list[bytes]:
    return re.findall(rb"\x1b\]9;[^\x07]*\x07\x07|\x07", seat.raw_output)


def expect_notifications(seat: TerminalSession, *notices: bytes) -> None:
    """Wait for notices, and check that these came in this order, and no other."""
    seat.wait_until(lambda: len(notifications(seat)) >= len(notices), "the notices")
    assert notifications(seat) == list(notices)
    assert "Windlass needs" not in seat.full_text()


@slow
def test_who_looks_elsewhere_is_called_when_something_waits_or_a_long_run_has_ended(sit: Open) -> None:
    seat = open_session(
        sit,
        reply_to("ask", ASKS),
        reply_to("quick", answer("At once.")),
        *one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "pushed", delay_ms=900)),
    )
    seat.send_line("push")
    seat.wait_for("[n] no")
    expect_notifications(seat, NEEDED)
    seat.pause()
    seat.send("n")
    seat.wait_for("resume with")
    expect_notifications(seat, NEEDED, FAILED)
    seat.send_line("quick")
    seat.wait_for("At once.")
    seat.wait_stable()
    expect_notifications(seat, NEEDED, FAILED)
    seat.send_line("ask")
    seat.wait_for("type a number")
    expect_notifications(seat, NEEDED, FAILED, NEEDED)
    seat.send(ctrl("c"))
    seat.wait_for("exit 130")


@slow
@pytest.mark.parametrize("term", ["linux", "dumb"])
def test_a_terminal_that_would_print_a_notification_gets_the_bell_alone(sit: Open, term: str) -> None:
    seat = open_session(sit, reply_to("ask", ASKS), *one_step(step_reply("s1", "Slow.", delay_ms=900)), TERM=term)
    seat.wait_for("Ctrl-D leaves")
    seat.send("go\r")
    seat.wait_for("1 ok")
    expect_notifications(seat, b"\x07")
    seat.send("ask\r")
    seat.wait_for("Which?")
    seat.pause()
    expect_notifications(seat, b"\x07", b"\x07")


@pytest.mark.parametrize(("duration_ms", "expected"), [(9_999, b""), (10_000, DONE)])
def test_only_a_run_that_took_long_is_told_of(duration_ms: int, expected: bytes) -> None:
    end = RunCompleted(subtype="success", is_error=False, exit_code=0, result="x", duration_ms=duration_ms)
    assert notification_for(end, term="xterm").encode() == expected
