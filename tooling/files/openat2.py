"""Opening a path below an open folder, with no link on the way, whatever others rename meanwhile."""

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

Opener: TypeAlias = Callable[[int, str, int], int]

# Systems without O_PATH open the folders on the way for reading.
DIR_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYS_OPENAT2 = 437
# RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
_RESOLVE_FLAGS = 0x02 | 0x04 | 0x08
_TRIES = 8


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open what exists at `path` below the folder `root`; a link or `..` anywhere in it is an OSError.

    The descriptor is of the very thing that the path named without links: swapping a folder for a link between a
    check and this call makes it fail, never lead elsewhere.
    """
    if "\0" in path:
        raise ValueError("embedded null character in path")
    return (openat2() or open_by_component)(root, path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def open_by_component(root: int, path: str, flags: int) -> int:
    """Open component by component, each in the folder opened before it, for kernels without openat2."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if path.rstrip(".").endswith("/"):
        flags |= os.O_DIRECTORY
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            below = os.open(part, DIR_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(parts[-1] if parts else ".", flags, dir_fd=folder)
    finally:
        os.close(folder)


@cache
def openat2() -> Opener | None:
    """Return the kernel's own contained open, or None where there is none or it is forbidden."""
    import ctypes

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    def opened(root: int, path: str, flags: int) -> int:
        how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_FLAGS)
        for _ in range(_TRIES):
            fd = syscall(_SYS_OPENAT2, root, os.fsencode(path or "."), ctypes.byref(how), ctypes.sizeof(how))
            if fd >= 0:
                return int(fd)
            # A rename anywhere on the machine may make the kernel unsure; it asks to be asked again.
            if (code := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path)

    return opened if _is_supported(opened) else None


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
