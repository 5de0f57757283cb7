"""Canonical text of a command, as rules match it."""

import re
from collections.abc import Iterator

from tooling.safety.shell.command import Command, display_word, is_unknown
from tooling.safety.shell.path_access import PathAccess

_BLANK = re.compile(r"\s")
_OPERATOR = re.compile(r"[<>|&]")
_CROSS_TARGET = re.compile(
    r"(?:[\w]+-)+(?:linux|elf|eabi|mingw32|apple)\w*(?:-\w+)*-(gcc|g\+\+|ld|ar|objdump|strip|nm|clang)|([a-z+]+)-?[\d.]+"
)
_FAMILIES = re.compile(r"(clang|cargo|protoc|dart|flutter)-\w")
_VERSIONED = re.compile(
    r"(python|pypy|pip|node|ruby|perl|php|lua|gcc|clang|go|exim|frida|stunnel|fusermount)[\d.]+"
    r"|(mkfs|nc|iptables|ip6tables)[.-]\w+"
)
# All plain words of these are paths; for other programs only words that look like one are canonicalized.
_DELETERS = frozenset({"rm", "grm", "rmdir", "unlink", "srm", "shred", "rimraf", "trash"})
_PATHS_MATTER = _DELETERS | {
    *("mv", "cp", "ln", "install", "rsync", "tee", "truncate", "chmod", "chown", "chgrp", "chattr", "setfacl", "dd"),
    *("tar", "unzip", "touch", "sed"),
}


def rule_texts(command: Command, access: PathAccess) -> Iterator[str]:
    """Yield the canonical text of a command, without and with each of its redirections.

    The program has no folder, single blanks separate the words, and paths are relative to the workspace if they matter.
    """
    program = strip_version(command.program)
    words = command.words[1:]
    if program in _PATHS_MATTER:
        words = tuple(_relative_to_workspace(program, word, command.cwd, access) for word in words)
    text = " ".join((program, *map(rule_word, words)))
    if text:
        yield text
    for redirect in command.redirects:
        target = rule_word(access.canonical(redirect.target, command.cwd))
        yield f"{text} {'>' if redirect.writes else '<'} {target}".lstrip()


def strip_version(program: str) -> str:
    """Return a program's name without version or variant where rules cover all of them: `python3.11`, `mkfs.ext4`."""
    found = _VERSIONED.fullmatch(program)
    return (found[1] or found[2]) if found else program


def base_program(program: str) -> str:
    """Return the name of a program without version or target machine: `arm-linux-gnueabi-gcc`."""
    found = _CROSS_TARGET.fullmatch(program) or _FAMILIES.match(program)
    return next(group for group in found.groups() if group) if found else program


def rule_word(word: str) -> str:
    """Return a word as rules match it: without blanks, and never mistaken for a redirection."""
    if _OPERATOR.match(word):
        word = "\\" + word
    return _BLANK.sub("\u2423", display_word(word))


def _relative_to_workspace(program: str, word: str, cwd: str, access: PathAccess) -> str:
    name, equals, value = word.partition("=")
    if equals and name in ("if", "of"):
        return f"{name}={access.canonical(value, cwd)}"
    is_path = program in _DELETERS or word[:1] in ("/", "~", ".", "*")
    if not word or not is_path or word.startswith("-") or is_unknown(word) or "://" in word:
        return word
    ending = "/" if word.endswith("/") and word.strip("/") else ""
    return access.canonical(word, cwd).rstrip("/") + ending or "/"
