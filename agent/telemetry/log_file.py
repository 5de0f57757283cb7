"""The log file: lines of JSON in the data folder, rotated by size, readable only by their owner."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tooling.contract.json_codec import JsonObject
from tooling.contract.json_text import json_encoder
from tooling.files.open_regular import NotRegularFile, open_fd, open_regular

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
MAX_BYTES = 5_000_000
# Number of rotated files, in addition to the current one.
KEPT = 3
_to_text = json_encoder(ensure_ascii=False)


def log_path(data: Path) -> Path:
    """Return the log file of a data folder, which may not exist."""
    return data / "logs" / "agent.jsonl"


def error_log_path(data: Path) -> Path:
    """Return the log file with errors only, which may not exist."""
    return data / "logs" / "errors.jsonl"


class LogFile:
    """Appends lines to a log; several processes may do so at the same time."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._fd: int | None = None

    def write(self, line: Mapping[str, object]) -> None:
        """Append one line. Errors are ignored: logging must not disturb the run."""
        data = _to_text(line).encode("utf-8", "backslashreplace") + b"\n"
        with contextlib.suppress(OSError):
            fd = self._open()
            # A single write with O_APPEND keeps lines of several processes apart.
            os.write(fd, data)
            if os.fstat(fd).st_size > self._max_bytes:
                self.close()
                self._rotate()

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _open(self) -> int:
        if self._fd is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self._fd = open_fd(self._path, flags)
        return self._fd

    def _rotate(self) -> None:
        """Rename the file to .1, .1 to .2 and so on, under a lock, so that two processes do not rotate twice."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            if self._path.stat().st_size <= self._max_bytes:
                return
            for number in range(KEPT, 0, -1):
                older = rotated(self._path, number - 1)
                if older.exists():
                    older.replace(rotated(self._path, number))
        finally:
            os.close(folder)


def rotated(path: Path, number: int) -> Path:
    """Return a rotated file; number 0 is the current one."""
    return path.with_name(f"{path.name}.{number}") if number else path


def read_log(path: Path) -> Iterator[JsonObject]:
    """Yield all lines, oldest first; damaged ones are skipped."""
    for number in range(KEPT, -1, -1):
        with contextlib.suppress(FileNotFoundError, NotRegularFile), open_regular(rotated(path, number)) as lines:
            yield from parse_lines(lines)


def parse_lines(lines: Iterator[bytes]) -> Iterator[JsonObject]:
    """Yield the lines that are JSON objects."""
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value
