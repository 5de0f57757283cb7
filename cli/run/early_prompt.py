"""A prompt drawn before the REPL is imported; keys typed meanwhile wait in the terminal, without echo."""

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from agent.config.user_dirs import os_environ

PROMPT = b"> "


@contextmanager
def early_prompt() -> Iterator[None]:
    """Draw the prompt and turn off echo and line editing; restore the terminal at the end."""
    if os_environ().get("TERM", "dumb") == "dumb":
        # A dumb terminal only has lines, and edits them itself.
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    early = termios.tcgetattr(keyboard)
    early[0] &= ~termios.ICRNL
    # Ctrl-C waits like any other key, until the REPL can handle it.
    early[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(keyboard, termios.TCSANOW, early)
    os.write(sys.stdout.fileno(), PROMPT)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
