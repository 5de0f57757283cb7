"""Protection of a home folder inside a writable one: commands must not change start-up files and configuration.

Names of start-up files cannot be listed completely, and one that does not exist yet cannot be mounted over without
creating it. So nothing can be created directly in such a home folder, and nothing changed whose name begins with a dot
or that is in PATH; all other files and folders in it can be changed.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.vocabulary.errors import SandboxError
from tooling.contract.fast_dataclass import dataclass

# Folders that shells, desktops and schedulers take programs from, below a home folder.
_PROGRAM_FOLDERS = ("bin", "sbin", "go/bin", "Applications", "Library", "Desktop", "autostart", "snap")
# More would make the command line of the sandbox too long.
_MAX_ENTRIES = 500
IS_HOME = (
    "{folder} is your home folder: commands cannot create files directly in it, or change what begins with a dot or is "
    "in PATH"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFolders:
    """Folders in which nothing can be created, and the paths in them that can be changed."""

    frozen: tuple[Path, ...] = ()
    thawed: tuple[Path, ...] = ()


def find_home_folders(writable: Iterable[Path], homes: Iterable[Path], environ: Mapping[str, str]) -> HomeFolders:
    """Return the writable home folders, and the paths in them that can be changed. Raises SandboxError."""
    frozen = [home for home in homes if home.is_dir() and any(home.is_relative_to(root) for root in writable)]
    programs = _program_folders(frozen, environ)
    thawed = [path for home in frozen for path in _changeable(home, programs)]
    if len(thawed) > _MAX_ENTRIES:
        raise SandboxError(
            f"your home folder has more than {_MAX_ENTRIES:,} entries, too many to protect it as the workspace",
            hint="choose a narrower folder with -C",
        )
    inside = [path for path in programs if any(path.is_relative_to(top) for top in thawed)]
    return HomeFolders(frozen=(*frozen, *inside), thawed=tuple(thawed))


def is_changeable(path: Path, folders: HomeFolders) -> bool:
    """Whether commands may change a path: the innermost folder around it decides."""
    around = [one for one in (*folders.frozen, *folders.thawed) if path.is_relative_to(one)]
    return not around or max(around, key=lambda one: len(one.parts)) in folders.thawed


def _program_folders(homes: Iterable[Path], environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders below the home folders whose programs run by name or automatically."""
    on_path = [Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]
    named = [home / name for home in homes for name in _PROGRAM_FOLDERS]
    below = [path for path in (*named, *on_path) if any(path.is_relative_to(home) for home in homes)]
    return tuple(dict.fromkeys(path for path in below if path.is_dir() and not path.is_symlink()))


def _changeable(home: Path, programs: Iterable[Path]) -> list[Path]:
    """Return the changeable paths in a home folder, without links, because the mount would show their targets."""
    try:
        with os.scandir(home) as entries:
            names = sorted(entry.name for entry in entries if _is_file_or_folder(entry))
    except OSError:
        return []
    # Files that git executes or reads as configuration are protected separately.
    visible = [home / name for name in names if not name.startswith(".") or name == ".git"]
    return [path for path in visible if path not in programs]


def _is_file_or_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)
