"""Reading regular files by descriptor: never a FIFO, a device or a socket."""

import io
import os
import stat

from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError
from tooling.files.resolve import ResolvedPath, open_to_read

# Without O_NONBLOCK the open of a FIFO waits for a writer, for ever.
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_SNIFF_BYTES = 8192


def open_text(path: str, ctx: ExecCtx) -> tuple[io.BufferedReader, ResolvedPath]:
    """Open a text file a tool may read; anything else is a ToolError that says what it is."""
    fd, spot = open_to_read(path, ctx, READ_FLAGS)
    return text_reader(fd, spot.display_path), spot


def text_reader(fd: int, shown: str) -> io.BufferedReader:
    """Take over a descriptor and read it as text; closes it when it is no regular text file."""
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        kind = "a directory; use list_directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{shown} is {kind}.")
    file = os.fdopen(fd, "rb")
    if is_binary(file.peek(_SNIFF_BYTES)):
        file.close()
        raise ToolError(f"{shown} is a binary file; inspect it with a command such as file or xxd.")
    return file


def is_binary(data: bytes) -> bool:
    """Say whether a file that begins like this is no text, as ripgrep and git see it."""
    return b"\0" in data[:_SNIFF_BYTES]
