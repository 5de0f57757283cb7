"""Configuration of a repository: parsed by git, and reduced to settings that run no programs."""

import os
import re
import subprocess
from collections.abc import Collection, Iterable
from typing import TypeAlias

from agent.backends.sandbox.types import find_program
from tooling.contract.lazy_pattern import lazy_pattern

Entry: TypeAlias = tuple[str, str | None]
MAX_CONFIG_BYTES = 1_000_000
_READ_TIMEOUT_S = 5

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
