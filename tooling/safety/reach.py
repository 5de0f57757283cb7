"""Which paths in a command lie outside the workspace."""

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from tooling.safety.sensitive_files import is_sensitive_file
from tooling.safety.shell_text import SimpleCommand, program_name

_READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/tmp", "/var/tmp")
_SCRATCH = ("/tmp", "/var/tmp")
_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty")
)
_FACTS = frozenset({"/etc/os-release", "/etc/debian_version", "/proc/cpuinfo", "/proc/meminfo", "/proc/version"})
# Programs whose first plain word is an expression, and those whose words are all just text.
_SCRIPT_FIRST = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "rg", "ag", "perl", "jq", "yq"})
_TEXT_ONLY = frozenset({"echo", "printf", "expr", "true", "false", "exit", "return", "test", "[", "[[", "let", "seq"})
_WRITES_ALL = frozenset(
    {"rm", "rmdir", "mv", "tee", "touch", "mkdir", "truncate", "chmod", "chown", "chgrp", "shred", "unlink", "mkfifo"}
)
_WRITES_LAST = frozenset({"cp", "ln", "install", "rsync"})
_GLUED = re.compile(r"-{1,2}[\w-]+?(?:=|(?=[/~])|(?=\.\.))(.+)")
_ASSIGNED = re.compile(r"[A-Za-z_][\w-]*=(.+)")
_HOME = re.compile(r"~(?:[\w-]+)?(?=/|$)|\$HOME\b|\$\{HOME[^}]*\}")


def path_problems(command: SimpleCommand, cwd: Path, roots: tuple[Path, ...]) -> Iterator[str]:
    """Yield a reason for every path of a command that leaves the workspace or names a file of secrets."""
    program = program_name(command.words)
    words = _path_words(program, command.words)
    for index, word in enumerate(words):
        is_last = index == len(words) - 1
        writes = program in _WRITES_ALL or (program in _WRITES_LAST and is_last)
        for path in _candidates(word):
            yield from _problem(path, cwd, roots, writes=writes)
    for redirect in command.redirects:
        yield from _problem(redirect.target, cwd, roots, writes=redirect.writes)


def directory_after(command: SimpleCommand, cwd: Path) -> Path:
    """Return where later commands run: `cd` moves."""
    words = command.words
    if len(words) == 2 and words[0] in ("cd", "pushd") and not words[1].startswith(("-", "~", "$")):
        return Path(os.path.normpath(cwd / words[1]))
    return cwd


def _path_words(program: str, words: list[str]) -> list[str]:
    if program in _TEXT_ONLY:
        return []
    if program not in _SCRIPT_FIRST:
        return words
    plain = [index for index, word in enumerate(words) if index and not word.startswith("-")]
    return [word for index, word in enumerate(words) if index != (plain[0] if plain else -1)]


def _candidates(word: str) -> Iterator[str]:
    glued = _GLUED.fullmatch(word) or _ASSIGNED.fullmatch(word)
    path = glued[1] if glued else word
    if path.startswith("-") or ("://" in path and not path.startswith("file:")) or len(path) > 4096:
        return
    yield path


def _problem(word: str, cwd: Path, roots: tuple[Path, ...], *, writes: bool) -> Iterator[str]:
    if is_sensitive_file(word):
        yield f"{word} usually holds secrets"
        return
    if _HOME.match(word) or word.startswith("file:"):
        yield f"{word} is outside the workspace"
        return
    path = word.replace("${PWD}", str(cwd)).replace("$PWD", str(cwd))
    if path.startswith(("$", "/dev/fd/")) or path in _DEVICES:
        return
    if not _is_inside(path, cwd, roots, writes=writes):
        yield f"{word} is outside the workspace"


def _is_inside(path: str, cwd: Path, roots: tuple[Path, ...], *, writes: bool) -> bool:
    lexical = os.path.normpath(f"{cwd}/{path}" if not path.startswith("/") else path)
    if not writes and lexical in _FACTS:
        return True
    allowed = (*map(str, roots), *(_SCRATCH if writes else _READABLE))
    try:
        # Resolving a whole path is slow; a plain name leads out only if it is a link itself.
        real = lexical if "/" not in path and not Path(lexical).is_symlink() else os.path.realpath(lexical)
    except (OSError, ValueError):
        return False
    return _in_any(lexical, allowed) and _in_any(real, allowed)


def _in_any(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
