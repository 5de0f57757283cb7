"""Golden screens: reviewed snapshots of what users see."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_VARIABLE = (
    (re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "⠋"),
    (re.compile(r"\b\d+(\.\d)?s\b"), "0.0s"),
    (re.compile(r"run-\d{14}-[0-9a-f]{6}"), "run-20260101000000-abcdef"),
    (re.compile(r"Windlass \d+\.\d+\.\d+"), "Windlass 0.0.0"),
)


def normalize(screen: str) -> str:
    """Replace everything that differs between runs."""
    for pattern, replacement in _VARIABLE:
        screen = pattern.sub(replacement, screen)
    return "\n".join(line.rstrip() for line in screen.strip("\n").splitlines()) + "\n"


def assert_matches_snapshot(name: str, screen: str) -> None:
    """Compare a screen with its snapshot; a missing snapshot is written, for review."""
    path = _FOLDER / f"{name}.txt"
    if not path.exists():
        path.write_text(normalize(screen), "utf-8")
        raise AssertionError(f"{path} is new: review it, then run again (delete it to regenerate it)")
    assert normalize(screen) == path.read_text("utf-8")
