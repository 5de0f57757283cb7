"""Read regular files by descriptor; FIFOs, devices and sockets are refused."""

import io
import os
import stat

from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError
from tooling.files.resolve import ResolvedPath, open_to_read

# Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_SNIFF_BYTES = 8192


def open_text(path: str, ctx: ExecCtx) -> tuple[io.BufferedReader, ResolvedPath]:
    """Open a text file that a tool may read; raise ToolError for anything else."""
    fd, target = open_to_read(path, ctx, READ_FLAGS)
    return text_reader(fd, target.display_path), target


def text_reader(fd: int, display_path: str) -> io.BufferedReader:
    """Take ownership of a descriptor and return a reader; raise ToolError if it is not a regular text file."""
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        kind = "a directory; use list_directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError(f"{display_path} is {kind}.")
    file = os.fdopen(fd, "rb")
    if is_binary(file.peek(_SNIFF_BYTES)):
        file.close()
        raise ToolError(f"{display_path} is a binary file; inspect it with a command such as file or xxd.")
    return file


def is_binary(data: bytes) -> bool:
    """Whether a file starting with these bytes is binary, by the same test as ripgrep and git."""
    return b"\0" in data[:_SNIFF_BYTES]
