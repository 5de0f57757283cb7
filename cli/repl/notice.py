"""A sign for a person who looks elsewhere: the bell, and a notification where the terminal knows how."""

from cli.screen.paint import shown

_LONG_S = 10.0


def notice(text: str) -> str:
    """Return what rings the bell and shows a text outside the terminal's window; nothing of it is printed."""
    return f"\x1b]9;{shown(text)}\x07\x07"


def is_worth_it(seconds: float) -> bool:
    """Say whether a run took so long that its person may have turned away."""
    return seconds >= _LONG_S
