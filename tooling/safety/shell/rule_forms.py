"""Commands in the one form that rules are written for."""

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
# Their plain words are paths; of the others only what is plainly one is seen from the workspace.
_DELETERS = frozenset({"rm", "grm", "rmdir", "unlink", "srm", "shred", "rimraf", "trash"})
_PATHS_MATTER = _DELETERS | {
    *("mv", "cp", "ln", "install", "rsync", "tee", "truncate", "chmod", "chown", "chgrp", "chattr", "setfacl", "dd"),
    *("tar", "unzip", "touch", "sed"),
}


def rule_texts(command: Command, reach: PathAccess) -> Iterator[str]:
    """Yield a command as rules see it, without and with its redirections.

    The program is bare, single blanks stand between words, and paths that matter are seen from the workspace.
    """
    program = strip_version(command.program)
    words = command.words[1:]
    if program in _PATHS_MATTER:
        words = tuple(_relative_to_workspace(program, word, command.cwd, reach) for word in words)
    text = " ".join((program, *map(rule_word, words)))
    if text:
        yield text
    for redirect in command.redirects:
        target = rule_word(reach.canonical(redirect.target, command.cwd))
        yield f"{text} {'>' if redirect.writes else '<'} {target}".lstrip()


def strip_version(program: str) -> str:
    """Return a program's name without its version or kind of file system, where rules are about all of them."""
    found = _VERSIONED.fullmatch(program)
    return (found[1] or found[2]) if found else program


def base_program(program: str) -> str:
    """Return the plain name of a program that is called by a version or a target machine."""
    found = _CROSS_TARGET.fullmatch(program) or _FAMILIES.match(program)
    return next(group for group in found.groups() if group) if found else program


def rule_word(word: str) -> str:
    """Return a word as rules see it: no blanks inside, and never mistaken for a redirection."""
    if _OPERATOR.match(word):
        word = "\\" + word
    return _BLANK.sub("\u2423", display_word(word))


def _relative_to_workspace(program: str, word: str, cwd: str, reach: PathAccess) -> str:
    name, equals, value = word.partition("=")
    if equals and name in ("if", "of"):
        return f"{name}={reach.canonical(value, cwd)}"
    is_path = program in _DELETERS or word[:1] in ("/", "~", ".", "*")
    if not word or not is_path or word.startswith("-") or is_unknown(word) or "://" in word:
        return word
    ending = "/" if word.endswith("/") and word.strip("/") else ""
    return reach.canonical(word, cwd).rstrip("/") + ending or "/"
