"""Reads the task from the argument, stdin, or both."""

import os
import select
import stat
import sys
import time
from collections.abc import Callable

from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError, UsageError

MAX_STDIN_BYTES = 1_000_000
_WARN_AFTER_S = 2.0
NO_TASK = "no task given"
EMPTY_TASK = "the task is empty"
WAITING_FOR_STDIN = "waiting for stdin to close (use </dev/null if there is no input)"
_TASK_HINT = 'describe the task: agent run "your task"'


class StoppedEarly(AgentError):
    """A signal or the time limit ended the run before it started."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def read_task(
    prompt: str | None, warn: Callable[[str], None], limit_s: float | None = None, *, reads_context: bool = True
) -> tuple[str, str | None]:
    """Return the task and the piped context; with `-` or without an argument stdin is the task."""
    if prompt not in (None, "-"):
        return _check_task(prompt or ""), (_read_stdin(warn, limit_s) if reads_context else "") or None
    if prompt is None and not _is_pipe_or_file():
        raise UsageError(NO_TASK, _TASK_HINT)
    return _check_task(_read_stdin(warn, limit_s)), None


def _check_task(text: str) -> str:
    if not text.strip():
        raise InputError(EMPTY_TASK, _TASK_HINT)
    if "\0" in text:
        raise InputError("the task contains a NUL character")
    return text.strip()


def _read_stdin(warn: Callable[[str], None], limit_s: float | None) -> str:
    if not _is_pipe_or_file():
        return ""
    fd = sys.stdin.fileno()
    end = None if limit_s is None else time.monotonic() + limit_s
    if not select.select([fd], [], [], min(_WARN_AFTER_S, limit_s or _WARN_AFTER_S))[0]:
        warn(WAITING_FOR_STDIN)
    text = bytearray()
    while chunk := _next_chunk(fd, end):
        text += chunk
        if len(text) > MAX_STDIN_BYTES:
            raise InputError(f"stdin is longer than {MAX_STDIN_BYTES} bytes", "pass it as a file with -i/--input")
    return text.decode("utf-8", "replace")


def _next_chunk(fd: int, end: float | None) -> bytes:
    if not select.select([fd], [], [], None if end is None else max(0.0, end - time.monotonic()))[0]:
        raise StoppedEarly(exit_codes.TIMED_OUT, "the time limit was reached while waiting for stdin")
    return os.read(fd, 1 << 16)


def _is_pipe_or_file() -> bool:
    """Whether stdin may carry text: not if it is a terminal or closed."""
    try:
        if sys.stdin is None or sys.stdin.closed:
            return False
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
