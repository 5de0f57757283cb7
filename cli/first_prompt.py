"""The prompt that is seen at once: keys wait in the terminal, unseen, until the rest is loaded."""

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

PROMPT = b"> "


@contextmanager
def first_prompt() -> Iterator[None]:
    """Draw the prompt and keep the terminal from echoing and changing keys; put it back as it was at the end."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    early = termios.tcgetattr(keyboard)
    early[0] &= ~termios.ICRNL
    early[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(keyboard, termios.TCSANOW, early)
    os.write(sys.stdout.fileno(), PROMPT)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
