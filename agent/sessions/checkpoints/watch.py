"""Watches folders with inotify: reports which of them have changed, without reading them."""

import os
import struct

_EVENT = struct.Struct("iIII")
_INIT_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_OVERFLOW = 0x4000
_IGNORED = 0x8000
# Modify, attrib, close_write, moved_from, moved_to, create, delete, delete_self, move_self; only folders.
_MASK = 0x0002 | 0x0004 | 0x0008 | 0x0040 | 0x0080 | 0x0100 | 0x0200 | 0x0400 | 0x0800 | 0x0100_0000
_READ_BYTES = 1 << 16


class FolderWatch:
    """Records changes in the given folders; raises OSError on systems without inotify."""

    def __init__(self) -> None:
        import ctypes

        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd: int = self._libc.inotify_init1(_INIT_FLAGS)
        except (OSError, AttributeError) as error:
            raise OSError("inotify is not available") from error
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify is not available")
        self._folders: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def add(self, folder: str, fd: int) -> None:
        """Watch an open folder under a name; raises OSError if there are too many."""
        # By descriptor: the folder may have been replaced by a link.
        number: int = self._libc.inotify_add_watch(self._fd, f"/proc/self/fd/{fd}".encode(), _MASK)
        if number < 0:
            raise OSError("too many folders to watch")
        self._folders[number] = folder
        self._numbers[folder] = number

    def remove(self, folder: str) -> None:
        """Forget a removed folder; a moved one keeps its watch under its new name."""
        number = self._numbers.pop(folder, None)
        if number is not None and self._folders.get(number) == folder:
            self._libc.inotify_rm_watch(self._fd, number)
            del self._folders[number]

    def changed(self) -> set[str] | None:
        """Return the folders changed since the last call, or None if the event queue overflowed."""
        found: set[str] = set()
        is_complete = True
        while data := self._read():
            start = 0
            while start < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, start)
                start += _EVENT.size + length
                if mask & _OVERFLOW:
                    is_complete = False
                elif number in self._folders:
                    found.add(self._folders[number])
                    if mask & _IGNORED:
                        self._numbers.pop(self._folders.pop(number), None)
        return found if is_complete else None

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Stop watching."""
        os.close(self._fd)
