"""Find the entry points of installed packages without importing importlib.metadata, which is slow to load."""

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass

GROUP = "windlass.tools"
HOOKS = "windlass.hooks"
PLUGINS = "windlass.plugins"
# Prefix of all our groups; the files of other packages are skipped.
_OURS = "windlass."
# Far more than any package declares, and little enough that no memory is mapped for each of hundreds of files.
_MAX_BYTES = 1 << 16
_METADATA_SUFFIXES = (".dist-info", ".egg-info")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A named object in an installed distribution; `target` is `module:attribute`."""

    distribution: str
    name: str
    target: str

    def load(self) -> object:
        """Import the object; exceptions raised by its module propagate."""
        module, _, attribute = self.target.partition(":")
        loaded: object = importlib.import_module(module.strip())
        for part in attribute.split("[")[0].strip().split("."):
            loaded = getattr(loaded, part)
        return loaded


def entry_points(paths: Iterable[str], group: str = GROUP) -> Iterator[EntryPoint]:
    """Yield the entry points of a group in import path order; the first copy of a distribution wins."""
    for distribution, text in _declarations(tuple(paths)):
        yield from _parse_section(text, group, distribution)


def plugin_folders(folder: Path) -> list[Path]:
    """Return the folders of the user's own plugins, by name."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def has_plugins(folder: Path, paths: Sequence[str]) -> bool:
    """Return whether there are plugins in the user's folder or in an installed package."""
    return bool(plugin_folders(folder)) or any(True for group in (PLUGINS, GROUP) for _ in entry_points(paths, group))


@cache
def _declarations(paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the entry points file of every distribution that has some of ours; read once per process."""
    seen: set[str] = set()
    found: list[tuple[str, str]] = []
    for folder in paths:
        for name in _metadata_folders(folder):
            distribution = name.partition("-")[0].removesuffix(".egg-info").lower()
            if distribution in seen:
                continue
            seen.add(distribution)
            text = _read_text(f"{folder or '.'}/{name}/entry_points.txt")
            if _OURS in text:
                found.append((distribution, text))
    return tuple(found)


def _metadata_folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(_METADATA_SUFFIXES))
    except OSError:
        return []


def _read_text(path: str) -> str:
    # Most packages have no such file, and there are hundreds: no Path and no stream for each.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, _MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(fd)


def _parse_section(text: str, group: str, distribution: str) -> Iterator[EntryPoint]:
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            yield EntryPoint(distribution=distribution, name=name.strip(), target=target.strip())
