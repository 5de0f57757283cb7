"""Process exit: flush the streams, then skip the interpreter's teardown."""

import os
import sys


def exit_process(exit_code: int) -> None:
    """Flush and exit. A closed pipe is not an error; a full disk turns success into 1."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            pass
        except (OSError, ValueError):
            exit_code = exit_code or 1
    # Tearing down modules and threads takes tens of milliseconds, and all state is on disk already.
    os._exit(exit_code)
