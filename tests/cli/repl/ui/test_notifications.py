"""Signs for a person who looks elsewhere: heard and shown outside of the window, and never on the screen."""

import re
import sys
from collections.abc import Callable

import pytest

from agent.protocol.events import RunCompleted
from cli.repl.ui.notifications import notice_of
from tests.cli.repl.terminal_session import Seat, ctrl
from tests.cli.repl.test_conversation import to
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.terminal_user import answer, calls, one_step, plan, says

Open = Callable[..., Seat]
slow = pytest.mark.slow
NEEDED, DONE, FAILED = (
    f"\x1b]9;{text}\x07\x07".encode() for text in ("Windlass needs an answer", "Windlass: done", "Windlass: failed")
)
# The real program, only that a run is long which took as long as this test can wait.
IMPATIENT = (
    "import cli.repl.ui.notifications; cli.repl.ui.notifications._LONG_S = 0.8; from cli.main import main; main()"
)
ASKS = plan({"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?"})


def opened(sit: Open, *replies: object, **environ: str) -> Seat:
    return sit(*replies, program=[sys.executable, "-c", IMPATIENT], **environ)


def heard(seat: Seat) -> list[bytes]:
    return re.findall(rb"\x1b\]9;[^\x07]*\x07\x07|\x07", seat.bytes_seen)


def has_notices(seat: Seat, *notices: bytes) -> None:
    """Wait for notices, and check that these came in this order, and no other."""
    seat.until(lambda: len(heard(seat)) >= len(notices), "the notices")
    assert heard(seat) == list(notices)
    assert "Windlass needs" not in seat.all()


@slow
def test_who_looks_elsewhere_is_called_when_something_waits_or_a_long_run_has_ended(sit: Open) -> None:
    seat = opened(
        sit,
        to("ask", ASKS),
        to("quick", answer("At once.")),
        *one_step(calls("s1", "run_command", command=PUSH), says("s1", "pushed", delay_ms=900)),
    )
    seat.says("push")
    seat.sees("[n] no")
    has_notices(seat, NEEDED)
    seat.settles()
    seat.types("n")
    seat.sees("go on with")
    has_notices(seat, NEEDED, FAILED)
    seat.says("quick")
    seat.sees("At once.")
    seat.settled()
    has_notices(seat, NEEDED, FAILED)
    seat.says("ask")
    seat.sees("type a number")
    has_notices(seat, NEEDED, FAILED, NEEDED)
    seat.types(ctrl("c"))
    seat.sees("exit 130")


@slow
@pytest.mark.parametrize("term", ["linux", "dumb"])
def test_a_terminal_that_would_print_a_notification_gets_the_bell_alone(sit: Open, term: str) -> None:
    seat = opened(sit, to("ask", ASKS), *one_step(says("s1", "Slow.", delay_ms=900)), TERM=term)
    seat.sees("Ctrl-D leaves")
    seat.types("go\r")
    seat.sees("1 ok")
    has_notices(seat, b"\x07")
    seat.types("ask\r")
    seat.sees("Which?")
    seat.settles()
    has_notices(seat, b"\x07", b"\x07")


@pytest.mark.parametrize(("duration_ms", "expected"), [(9_999, b""), (10_000, DONE)])
def test_only_a_run_that_took_long_is_told_of(duration_ms: int, expected: bytes) -> None:
    end = RunCompleted(subtype="success", is_error=False, exit_code=0, result="x", duration_ms=duration_ms)
    assert notice_of(end, term="xterm").encode() == expected
