"""Copies a folder for experiments that must not touch the original."""

import contextlib
import os
import shutil
import stat
from pathlib import Path

from agent.sessions.checkpoints.heaps import HEAP_NAMES
from agent.vocabulary.errors import InputError

MAX_COPY_BYTES = 4_000_000_000
_COPY_BYTES = 1 << 26
_MAX_REWRITTEN_BYTES = 1_000_000
# Files of virtual environments that contain the path of their folder.
_SELF_NAMING = (".pth", "pyvenv.cfg")


def copy_folder(source: Path, target: Path) -> tuple[str, ...]:
    """Copy a folder without its pipes, sockets and devices; return the folders that were left out for their size.

    Scripts of virtual environments that contain the path of the folder are changed to that of the copy.
    """
    size, heaps = _measure(source)
    left_out: tuple[str, ...] = ()
    if size > MAX_COPY_BYTES:
        left_out = tuple(sorted(heaps))
        if size - sum(heaps.values()) > MAX_COPY_BYTES:
            raise InputError(f"{source} is too large to be copied ({size / 1e9:.1f} GB)")
    _copy_tree(source, target, frozenset(left_out), source, target)
    return left_out


def _measure(root: Path) -> tuple[int, dict[str, int]]:
    """Return the size of a folder, and of the caches and environments in it."""
    total = 0
    heaps: dict[str, int] = {}
    for folder, _, names in os.walk(root):
        inside = Path(folder).relative_to(root)
        heap = next((inside.parts[: n + 1] for n, part in enumerate(inside.parts) if part in HEAP_NAMES), None)
        size = 0
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 (os.walk yields strings)
        total += size
        if heap and heap[-1] != ".git":
            key = "/".join(heap)
            heaps[key] = heaps.get(key, 0) + size
    return total, heaps


def _copy_tree(source: Path, target: Path, left_out: frozenset[str], root: Path, copy: Path) -> None:
    target.mkdir(exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            path, into = Path(entry.path), target / entry.name
            if entry.is_symlink():
                into.symlink_to(path.readlink())
            elif entry.is_dir():
                if str(path.relative_to(root)) not in left_out:
                    _copy_tree(path, into, left_out, root, copy)
            elif entry.is_file():
                _copy_file(path, into, root, copy)
    shutil.copystat(source, target, follow_symlinks=False)


def _copy_file(source: Path, target: Path, root: Path, copy: Path) -> None:
    """Copy a file; the kernel shares its blocks if the filesystem supports it."""
    with source.open("rb") as old, target.open("xb") as new:
        status = os.fstat(old.fileno())
        try:
            while os.copy_file_range(old.fileno(), new.fileno(), _COPY_BYTES):
                pass
        except (OSError, AttributeError):
            old.seek(0)
            new.seek(0)
            new.truncate()
            shutil.copyfileobj(old, new)
    shutil.copystat(source, target)
    is_script = source.parent.name == "bin" and status.st_mode & stat.S_IXUSR
    if (is_script or source.name.endswith(_SELF_NAMING)) and status.st_size < _MAX_REWRITTEN_BYTES:
        data = target.read_bytes()
        if b"\0" not in data and os.fsencode(root) in data:
            target.write_bytes(data.replace(os.fsencode(root), os.fsencode(copy)))
