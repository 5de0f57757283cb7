"""Process exit: flush the streams, then skip the interpreter's teardown."""

import errno
import os
import sys


def exit_process(exit_code: int) -> None:
    """Flush and exit. A closed pipe is not an error; a full disk turns success into 1."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            pass
        except OSError as error:
            exit_code = exit_code or _report(error)
        except ValueError:
            exit_code = exit_code or 1
    # Tearing down modules and threads takes tens of milliseconds, and all state is on disk already.
    os._exit(exit_code)


def _report(error: OSError) -> int:
    """Report that the output is lost, and return the exit code."""
    try:
        print(f"error: {could_not_write('output', error)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass
    return 1


def could_not_write(what: str, error: OSError) -> str:
    """Return the message about lost output."""
    why = "stdout is closed" if error.errno == errno.EBADF else error.strerror
    return f"could not write the {what}: {why}"
