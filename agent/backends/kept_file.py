"""Bytes held as an open file without a name, for programs that want to be handed one."""

import os
import weakref


class KeptFile:
    """Lives as long as somebody holds it."""

    def __init__(self, content: bytes) -> None:
        self.number = os.memfd_create("windlass", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self.number)
        left = memoryview(content)
        while left:
            left = left[os.write(self.number, left) :]

    def opened(self) -> int:
        """Return a new descriptor that reads from the start, whatever others read at the same time."""
        return os.open(f"/proc/self/fd/{self.number}", os.O_RDONLY | os.O_CLOEXEC)
