"""Configuration of a repository: parsed by git, and reduced to settings that run no programs."""

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from agent.backends.sandbox.git.repositories import read_small
from agent.backends.sandbox.types import find_program
from tooling.contract.lazy_pattern import lazy_pattern

Entry: TypeAlias = tuple[str, str | None]
MAX_CONFIG_BYTES = 1_000_000
_READ_TIMEOUT_S = 5
# A file without these words includes no other one.
_NAMES_PATHS = (b"include", b"hookspath")

# A command may set these in a repository that it has created, as `git init`, `clone` and `remote add` do. Everything
# else is removed: git has dozens of settings that name a program, and gets new ones.
_HARMLESS = lazy_pattern(
    r"""
    core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|
           safecrlf|quotepath|abbrev|compression|sparsecheckout|sparsecheckoutcone|untrackedcache|preloadindex)
    | user\.(name|email) | init\.defaultbranch | commit\.gpgsign | gc\.auto | tag\.sort | rerere\.enabled
    | pull\.(rebase|ff) | push\.(default|autosetupremote|followtags) | fetch\.(prune|prunetags) | merge\.ff
    | rebase\.(autosquash|autostash) | (color|advice|status)\..* | diff\.(algorithm|renames|colormoved)
    | extensions\.(objectformat|refstorage|worktreeconfig) | lfs\.repositoryformatversion
    | branch\..*\.(merge|rebase|description)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS = lazy_pattern(
    r"remote\..*\.(url|pushurl|fetch|tagopt|prune)|branch\..*\.(remote|pushremote)|submodule\..*\.(url|active|branch)",
    re.DOTALL,
)
_LFS = lazy_pattern(r"filter\.lfs\.(clean|smudge|process|required)")
_LFS_VALUE = lazy_pattern(r"true|git-lfs (clean|smudge|filter-process)( --)?( %f)?")


def parse_entries(text: bytes) -> list[Entry] | None:
    """Return the settings in a configuration without those it includes, or None if git cannot parse it.

    Git itself parses it, so that there is no difference in interpretation.
    """
    git = find_program("git")
    if git is None or len(text) >= MAX_CONFIG_BYTES:
        return None
    try:
        # From standard input, outside of any repository and without user settings.
        found = subprocess.run(
            (git, "config", "--file", "-", "--list", "--null", "--no-includes"),
            input=text,
            capture_output=True,
            cwd="/",
            env={
                "PATH": os.defpath,
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CEILING_DIRECTORIES": "/",
            },
            timeout=_READ_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if found.returncode != 0:
        return None
    lines = (os.fsdecode(line).partition("\n") for line in found.stdout.split(b"\0") if line)
    return [(key, value if separator else None) for key, separator, value in lines]


def included_paths(config: Path, home: Path, work_tree: Path | None) -> Iterator[Path]:
    """Yield the files that a configuration includes, its folder of hooks, and the targets of links among them.

    Hooks can be relative to the work tree; the user's configuration does not belong to one.
    """
    pending, seen = [config], {config}
    while pending:
        path = pending.pop()
        text = read_small(Path(os.path.realpath(path)), MAX_CONFIG_BYTES)
        if not any(word in text.lower() for word in _NAMES_PATHS):
            continue
        for key, value in parse_entries(text) or ():
            is_include = key.startswith(("include.", "includeif.")) and key.endswith(".path")
            if not value or not (is_include or key == "core.hookspath"):
                continue
            base = path.parent if is_include else work_tree
            if base is None and not value.startswith(("/", "~")):
                continue
            target = Path(os.path.normpath((base or home) / _expand(value, home)))
            # The folder may be known under another name.
            for found in (Path(os.path.realpath(target.parent), target.name), Path(os.path.realpath(target))):
                if found not in seen:
                    seen.add(found)
                    pending += [found] if is_include else []
                    yield found


def _expand(value: str, home: Path) -> Path:
    """Return a path with the home folder it starts with: `~/…`, or `~NAME/…` of any user."""
    if value.startswith("~/"):
        return home / value.removeprefix("~/")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        # There is no such user, and git refuses the path.
        return Path(value)


def paths_of_user(home: Path) -> Iterator[Path]:
    """Yield the user's configuration, following links, and the paths it names for all repositories."""
    for path in _user_configs(home):
        real = Path(os.path.realpath(path))
        yield real
        yield from included_paths(real, home, None)


def _user_configs(home: Path) -> tuple[Path, ...]:
    return (home / ".config/git/config", home / ".gitconfig")


def hooks_folder_of_user(home: Path) -> str:
    """Return the folder in each repository from which the user's configuration takes hooks; empty without one."""
    found = ""
    for path in paths_of_user(home):
        text = read_small(path, MAX_CONFIG_BYTES)
        if _NAMES_PATHS[1] in text.lower():
            # The last one takes effect.
            found = [found, *(value or "" for key, value in parse_entries(text) or () if key == "core.hookspath")][-1]
    return "" if found.startswith(("/", "~")) or ".." in found else os.path.normpath(found) if found else ""


def without_programs(entries: Iterable[Entry], trusted: Collection[Entry]) -> tuple[list[Entry], list[str]]:
    """Split settings into those to keep and the names of those that could make git run a program.

    `trusted` are the settings from before the first command.
    """
    kept: list[Entry] = []
    removed: list[str] = []
    for entry in entries:
        if entry in trusted or _is_harmless(*entry):
            kept.append(entry)
        else:
            removed.append(entry[0])
    return kept, removed


def render_entries(entries: Iterable[Entry]) -> bytes:
    """Return settings as the text of a configuration file."""
    lines: list[str] = []
    for key, value in entries:
        section, _, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        quoted = subsection.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section} "{quoted}"]' if subsection else f"[{section}]")
        lines.append(f"\t{name}" if value is None else f"\t{name} = {_quote(value)}")
    return os.fsencode("\n".join(lines) + "\n")


def _is_harmless(key: str, value: str | None) -> bool:
    if _HARMLESS.fullmatch(key):
        return True
    if _ADDRESS.fullmatch(key):
        # `ext::sh -c …` names a program, and an address that starts with a dash is an option.
        return value is None or not ("::" in value or value.startswith("-"))
    return bool(_LFS.fullmatch(key) and _LFS_VALUE.fullmatch(value or "true"))


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
