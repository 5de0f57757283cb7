"""Open a path beneath an open folder without following links, safe against concurrent renames."""

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

Opener: TypeAlias = Callable[[int, str, int], int]

# Systems without O_PATH open the intermediate folders for reading.
DIR_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYS_OPENAT2 = 437
# RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
_RESOLVE_FLAGS = 0x02 | 0x04 | 0x08
_TRIES = 8


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open an existing `path` beneath the folder `root`; a link or `..` anywhere in it raises OSError.

    If a folder is swapped for a link between a check and this call, the call fails; it never opens anything outside.
    """
    if "\0" in path:
        raise ValueError("embedded null character in path")
    return (openat2() or open_by_component)(root, path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def open_by_component(root: int, path: str, flags: int) -> int:
    """Open one component after the other, each relative to its parent; for kernels without openat2."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if path.rstrip(".").endswith("/"):
        flags |= os.O_DIRECTORY
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            child = os.open(part, DIR_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = child
        return os.open(parts[-1] if parts else ".", flags, dir_fd=folder)
    finally:
        os.close(folder)


@cache
def openat2() -> Opener | None:
    """Return a wrapper of the openat2 system call, or None if it is missing or forbidden."""
    import ctypes

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    def open_contained(root: int, path: str, flags: int) -> int:
        how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_FLAGS)
        for _ in range(_TRIES):
            fd = syscall(_SYS_OPENAT2, root, os.fsencode(path or "."), ctypes.byref(how), ctypes.sizeof(how))
            if fd >= 0:
                return int(fd)
            # EAGAIN: a rename anywhere on the system raced with the lookup; the kernel wants us to retry.
            if (code := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path)

    return open_contained if _is_supported(open_contained) else None


def _is_supported(opener: Opener) -> bool:
    try:
        root = os.open("/", DIR_FLAGS)
        try:
            os.close(opener(root, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        finally:
            os.close(root)
    except OSError:
        return False
    return True
