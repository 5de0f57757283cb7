"""Landlock, seccomp and capabilities of the calling thread, through libc; child processes inherit all three.

They apply to one thread and cannot be undone, so they are set in a thread that does nothing but start processes.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

# The same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_ASK_VERSION = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _DROP_BOUND = 38, 22, 24
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_MAX_CAPABILITIES = 64

_RIGHTS = [
    "execute",
    "write_file",
    "read_file",
    "read_dir",
    "remove_dir",
    "remove_file",
    "make_char",
    "make_dir",
    "make_reg",
    "make_sock",
    "make_fifo",
    "make_block",
    "make_sym",
    "refer",
    "truncate",
    "ioctl_dev",
]
_BIT = {name: 1 << position for position, name in enumerate(_RIGHTS)}
_SINCE = {"refer": 2, "truncate": 3, "ioctl_dev": 5}
_READ_RIGHTS = _BIT["execute"] | _BIT["read_file"] | _BIT["read_dir"]
_FILE_RIGHTS = _BIT["execute"] | _BIT["write_file"] | _BIT["read_file"] | _BIT["truncate"] | _BIT["ioctl_dev"]
# Binding and connecting TCP sockets; abstract sockets and signals to processes outside.
_TCP, _SCOPES = 3, 3
_TCP_SINCE, _SCOPES_SINCE = 4, 6

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def landlock_version() -> int:
    """Return the Landlock ABI version, or 0 if the kernel has none or it is disabled."""
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    except OSError:
        return 0


def restrict_scope() -> None:
    """Block signals and abstract sockets to the outside; nothing else, because a restricted thread cannot mount."""
    if landlock_version() >= _SCOPES_SINCE:
        _enforce(_ruleset(files=0, tcp=0, scopes=_SCOPES))


def restrict_files(*, writable: Iterable[Path], readable: Iterable[Path]) -> None:
    """Restrict the thread to these paths, and block TCP, and signals and abstract sockets to the outside."""
    version = landlock_version()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    files = sum(bit for name, bit in _BIT.items() if version >= _SINCE.get(name, 1))
    tcp = _TCP if version >= _TCP_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    ruleset = _ruleset(files=files, tcp=tcp, scopes=scopes)
    try:
        for path in writable:
            _allow(ruleset, path, files)
        for path in readable:
            _allow(ruleset, path, files & _READ_RIGHTS)
    except OSError:
        os.close(ruleset)
        raise
    _enforce(ruleset)


def load_filter(program: bytes) -> None:
    """Load a seccomp filter for the thread."""
    _forbid_new_privileges()
    # The program contains null bytes, so its length must be given.
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_ = _Filter(len(program) // 8, ctypes.cast(buffer, ctypes.c_char_p))
    _check(_libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_FILTER), ctypes.byref(filter_), 0, 0))


def drop_capabilities() -> None:
    """Drop all capabilities of the thread and its children, even if it is root."""
    for number in range(_MAX_CAPABILITIES):
        # Fails for unknown numbers, and without privileges, when there is nothing to drop.
        _libc.prctl(_DROP_BOUND, ctypes.c_ulong(number), 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, struct.pack("=6I", 0, 0, 0, 0, 0, 0)))


def _ruleset(*, files: int, tcp: int, scopes: int) -> int:
    version = landlock_version()
    size = 8 if version < _TCP_SINCE else 16 if version < _SCOPES_SINCE else 24
    attributes = struct.pack("=QQQ", files, tcp, scopes)[:size]
    return _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = rights if path.is_dir() else rights & _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, opened)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(opened)


def _enforce(ruleset: int) -> None:
    try:
        _forbid_new_privileges()
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _forbid_new_privileges() -> None:
    _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))


def _call(number: int, *arguments: object) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *arguments))


def _check(result: int) -> int:
    if result < 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
    return result
