"""Where a task's words come from: the argument, stdin, or both."""

import os
import select
import stat
import sys
from collections.abc import Callable

from agent.vocabulary.errors import InputError, UsageError

STDIN_BYTES = 1_000_000
_PATIENCE_S = 2.0


def task_and_stdin(prompt: str | None, warn: Callable[[str], None]) -> tuple[str, str | None]:
    """Return the instruction and the piped context; `-`, or no argument at all, makes stdin the instruction."""
    if prompt not in (None, "-"):
        return _real(prompt or ""), _piped(warn) or None
    if prompt is None and not _is_pipe_or_file():
        raise UsageError("a task is missing", 'write it after the command: agent run "your task"')
    return _real(_piped(warn)), None


def _real(text: str) -> str:
    if not text.strip():
        raise InputError("the task is empty", 'write what is to be done: agent run "your task"')
    if "\0" in text:
        raise InputError("the task holds a NUL character")
    return text.strip()


def _piped(warn: Callable[[str], None]) -> str:
    if not _is_pipe_or_file():
        return ""
    fd = sys.stdin.fileno()
    if not select.select([fd], [], [], _PATIENCE_S)[0]:
        warn("waiting for the end of stdin (use </dev/null when there is none)")
    chunks: list[bytes] = []
    while chunk := os.read(fd, 1 << 16):
        chunks.append(chunk)
        if sum(map(len, chunks)) > STDIN_BYTES:
            raise InputError(f"stdin is longer than {STDIN_BYTES} bytes", "hand it over as a file with -i/--input")
    return b"".join(chunks).decode("utf-8", "replace")


def _is_pipe_or_file() -> bool:
    """Say whether stdin can hold text for us; a terminal cannot, nor can a stdin that is closed."""
    try:
        if sys.stdin is None or sys.stdin.closed:
            return False
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
