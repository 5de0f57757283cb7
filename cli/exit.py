"""The way out: flush what was said, then end at once."""

import os
import sys


def exit_process(exit_code: int) -> None:
    """End the process; a reader that went away is no error, a disk that is full is one."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            pass
        except (OSError, ValueError):
            exit_code = exit_code or 1
    # Tearing down modules and threads costs tens of milliseconds, and everything lasting is on disk already.
    os._exit(exit_code)
