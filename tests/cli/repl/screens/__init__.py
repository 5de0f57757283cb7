"""Screens as text: what a person saw once and found good, compared with what is drawn now."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_CHANGING = (
    (re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "⠋"),
    (re.compile(r"\b\d+(\.\d)?s\b"), "0.0s"),
    (re.compile(r"run-\d{14}-[0-9a-f]{6}"), "run-20260101000000-abcdef"),
    (re.compile(r"Windlass \d+\.\d+\.\d+"), "Windlass 0.0.0"),
)


def normalize(screen: str) -> str:
    """Return a screen without what is different every time."""
    for pattern, replacement in _CHANGING:
        screen = pattern.sub(replacement, screen)
    return "\n".join(line.rstrip() for line in screen.strip("\n").splitlines()) + "\n"


def assert_matches_snapshot(name: str, screen: str) -> None:
    """Compare a screen with the kept one; one that is not there yet is kept, to be looked at and committed."""
    path = _FOLDER / f"{name}.txt"
    if not path.exists():
        path.write_text(normalize(screen), "utf-8")
        raise AssertionError(f"{path} is new: look at it, then run again (remove it to have it drawn anew)")
    assert normalize(screen) == path.read_text("utf-8")
