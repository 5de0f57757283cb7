"""`!command`: the person's own command in the person's own shell, its output kept in case the agent should see it."""

import os
import pty
from collections.abc import Mapping

from tooling.output import decode_output, sanitize_output

_KEPT_BYTES = 100_000


def run_on_terminal(command: str, environ: Mapping[str, str]) -> tuple[int, str]:
    """Run a command with the terminal as its own; return its exit code and what it wrote."""
    kept = bytearray()

    def read(fd: int) -> bytes:
        data = os.read(fd, 65536)
        kept.extend(data)
        del kept[:-_KEPT_BYTES]
        return data

    status = pty.spawn([environ.get("SHELL") or "/bin/sh", "-c", command], read)
    return os.waitstatus_to_exitcode(status), sanitize_output(decode_output(bytes(kept)).replace("\r\n", "\n"))
