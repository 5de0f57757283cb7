"""Finds the interpreters and compilers a person has outside the system folders, by their PATH and by custom."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# Folders that version managers are known to keep interpreters in; relative to the home folder, without secrets.
_KNOWN_HOMES = (
    ".pyenv",
    ".rustup",
    ".nvm/versions",
    ".nodenv",
    ".volta",
    ".bun",
    ".deno",
    ".rbenv",
    ".rvm",
    ".asdf",
    ".goenv",
    ".jenv",
    ".ghcup",
    ".opam",
    ".sdkman/candidates",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/mise/installs",
    ".local/share/fnm",
    ".local/share/pipx/venvs",
    ".local/pipx/venvs",
)
_BIN_NAMES = ("bin", "sbin", "shims", "condabin")
# A folder with one of these next to its programs is an installation of its own.
_INSTALLATION_MARKS = ("lib", "lib64", "pyvenv.cfg", "conda-meta", "include", "jre", "libexec")
# Homes of tools that keep keys next to programs: of these only the programs are shown.
_KEEPS_KEYS = (".cargo", ".local", ".config", ".npm", ".gem", ".gradle", ".m2", ".docker", ".kube", ".aws", ".ssh")


def find_toolchains(environ: Mapping[str, str], home: Path, *, already_shown: Iterable[Path]) -> tuple[Path, ...]:
    """Return folders to show read-only, none inside another or inside what is shown; reads no workspace."""
    shown = tuple(already_shown)
    found: list[Path] = []
    candidates = {*_known(home), *_on_path(environ.get("PATH", ""), home, shown)}
    for path in sorted(candidates, key=lambda path: path.parts):
        if _is_too_wide(path, home) or any(path.is_relative_to(root) for root in (*shown, *found)):
            continue
        found.append(path)
    return tuple(found)


def _known(home: Path) -> Iterator[Path]:
    for name in _KNOWN_HOMES:
        path = home / name
        if _is_open_folder(path):
            yield path
            # A link to another disk: programs name the link, so both have to be there.
            yield path.resolve()


def _on_path(path: str, home: Path, shown: tuple[Path, ...]) -> Iterator[Path]:
    for entry in path.split(os.pathsep):
        folder = Path(entry)
        # What lies in the workspace is there anyway, and must not say what else is to be shown.
        if not folder.is_absolute() or any(folder.is_relative_to(root) for root in shown):
            continue
        if not _is_open_folder(folder):
            continue
        for place in {folder, folder.resolve()}:
            yield _installation(place, home)
        interpreter = folder / "python"
        if os.access(folder.parent / "pyvenv.cfg", os.R_OK) and os.access(interpreter, os.X_OK):
            yield _installation(interpreter.resolve().parent, home)


def _installation(folder: Path, home: Path) -> Path:
    """Return the whole installation that a folder of programs belongs to, or the folder alone."""
    root = folder.parent
    if root.name in _KEEPS_KEYS or folder.name not in _BIN_NAMES or _is_too_wide(root, home):
        return folder
    return root if any(os.access(root / mark, os.R_OK) for mark in _INSTALLATION_MARKS) else folder


def _is_too_wide(path: Path, home: Path) -> bool:
    """Say whether a folder holds more than a toolchain: a home, what homes lie in, or a top folder."""
    is_hidden_store = path.parent == home and path.name in _KEEPS_KEYS
    return len(path.parts) < 3 or home.is_relative_to(path) or path.parent == Path("/home") or is_hidden_store


def _is_open_folder(path: Path) -> bool:
    # Asked first, because looking at what lies in somebody else's home raises.
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir()
