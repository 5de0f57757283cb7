"""A sign for a person who looks elsewhere: the bell, and a notification where the terminal knows how."""

from agent.protocol.events import ApprovalRequested, Event, QuestionAsked, RunCompleted
from cli.screen.colors import to_single_line

_LONG_S = 10.0
# These print what they do not understand, or did for long.
_BELL_ONLY_TERMS = ("dumb", "linux", "vt", "ansi", "cons25")


def notification_for(event: Event, *, term: str) -> str:
    """Return what calls the person: something waits for them, or a run has ended that they may have turned from."""
    match event:
        case RunCompleted(duration_ms=duration, is_error=is_error) if duration / 1000 >= _LONG_S:
            return _sequence("Windlass: failed" if is_error else "Windlass: done", term)
        case ApprovalRequested() | QuestionAsked():
            return _sequence("Windlass needs an answer", term)
        case _:
            return ""


def _sequence(text: str, term: str) -> str:
    """Return what rings the bell and shows a text outside the terminal's window; nothing of it is printed."""
    return "\x07" if term.startswith(_BELL_ONLY_TERMS) or not term else f"\x1b]9;{to_single_line(text)}\x07\x07"
