"""The prompt that is seen at once: keys wait in the terminal, unseen, until the rest is loaded."""

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from agent.config.user_dirs import os_environ

PROMPT = b"> "


@contextmanager
def early_prompt() -> Iterator[None]:
    """Draw the prompt and keep the terminal from echoing and changing keys; put it back as it was at the end."""
    if os_environ().get("TERM", "dumb") == "dumb":
        # Lines are all it knows, and it edits them itself.
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    early = termios.tcgetattr(keyboard)
    early[0] &= ~termios.ICRNL
    # Ctrl-C waits as well: the prompt knows what it means.
    early[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(keyboard, termios.TCSANOW, early)
    os.write(sys.stdout.fileno(), PROMPT)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
