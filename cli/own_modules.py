"""Finds the modules of this program by their names: a start imports more than two hundred, and a search takes longer.

The finders of the standard library try each name as a builtin module, a frozen one, a folder and five kinds of files,
and ask the system ten questions about each. Loading is theirs, with the same caches; a module that is not found here
is searched by them, too.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from types import ModuleType

_PACKAGES = frozenset({"agent", "cli", "tooling"})


class OwnModules:
    """A finder for `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None, /) -> ModuleSpec | None:
        """Return where a module in one of our packages is; `path` is that of its package."""
        package, _, tail = name.rpartition(".")
        if not path or package.partition(".")[0] not in _PACKAGES:
            return None
        folder = f"{path[0]}/{tail}"
        if _exists(file := f"{folder}.py"):
            return _spec(name, file, ())
        if _exists(file := f"{folder}/__init__.py"):
            return _spec(name, file, (folder,))
        return None


class _Loader(SourceFileLoader):
    """Reads a file with four system calls: a buffered stream makes nine."""

    def get_data(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)


def install() -> None:
    """Find our modules this way from now on; finders that others have put before the standard ones stay first."""
    finders = sys.meta_path
    if OwnModules not in finders and BuiltinImporter in finders:
        finders.insert(finders.index(BuiltinImporter), OwnModules)


def _exists(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 (pathlib is not loaded yet)
    except OSError:
        return False
    return True


def _spec(name: str, file: str, folders: Sequence[str]) -> ModuleSpec:
    spec = ModuleSpec(name, _Loader(name, file), origin=file, is_package=bool(folders))
    # The module gets `__file__` and `__cached__`.
    spec.has_location = True
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.extend(folders)
    return spec
