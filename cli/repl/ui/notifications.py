"""Notifications for an inattentive user: the bell, and a desktop notification where supported."""

from agent.protocol.events import ApprovalRequested, Event, QuestionAsked, RunCompleted
from cli.screen.colors import to_single_line

NEEDS_ANSWER, DONE, FAILED = "Windlass needs an answer", "Windlass: done", "Windlass: failed"
_LONG_S = 10.0
# These print unknown sequences, or did for a long time.
_BELL_ONLY_TERMS = ("dumb", "linux", "vt", "ansi", "cons25")


def notification_for(event: Event, *, term: str) -> str:
    """Return the escape sequence for an event that needs attention: a question, or the end of a long run."""
    match event:
        case RunCompleted(duration_ms=duration, is_error=is_error) if duration / 1000 >= _LONG_S:
            return _sequence(FAILED if is_error else DONE, term)
        case ApprovalRequested(decided=False) | QuestionAsked():
            return _sequence(NEEDS_ANSWER, term)
        case _:
            return ""


def _sequence(text: str, term: str) -> str:
    """Return the bell, with an OSC 9 notification if the terminal supports it."""
    return "\x07" if term.startswith(_BELL_ONLY_TERMS) or not term else f"\x1b]9;{to_single_line(text)}\x07\x07"
