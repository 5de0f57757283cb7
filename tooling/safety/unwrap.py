"""Canonical commands: without keywords, assignments and paths of programs, and what wrappers really run."""

import re
from collections.abc import Iterator

from tooling.safety.shell_text import MAX_DEPTH, SimpleCommand, Unparsable, program_name, simple_commands

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!", "time"})
_HEADERS = frozenset({"for", "case", "select", "function"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
# A wrapper, and those of its options that take the next word.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t", "-U"}),
    "doas": frozenset({"-u", "-C"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n", "-p"}),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset({"-a"}),
    "busybox": frozenset(),
    "chronic": frozenset(),
    "watch": frozenset({"-n", "--interval"}),
}
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def canonical_commands(text: str, depth: int = 0) -> Iterator[SimpleCommand]:
    """Yield every command a shell text runs, through wrappers, shells and eval; doubt raises Unparsable."""
    if depth > MAX_DEPTH:
        raise Unparsable("it is nested too deeply")
    for command in simple_commands(text, depth):
        yield from _unwrapped(command, depth)


def _unwrapped(command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
    if depth > MAX_DEPTH:
        raise Unparsable("it is nested too deeply")
    words = _bare(command.words)
    program = program_name(words)
    yield SimpleCommand(words, command.redirects, command.script, command.is_piped)
    inner = _inner_words(program, words)
    if inner:
        yield from _unwrapped(SimpleCommand(inner, [], command.script, command.is_piped), depth + 1)
    for text in _inner_texts(program, words, command.script):
        yield from canonical_commands(text, depth + 1)


def _bare(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at] in _KEYWORDS or _ASSIGNMENT.match(words[at])):
        at += 1
    bare = words[at:]
    # "for x in a b" runs nothing itself, but its words may be paths.
    return ["for", *bare[1:]] if bare and bare[0] in _HEADERS else bare


def _inner_words(program: str, words: list[str]) -> list[str]:
    if program == "find":
        starts = [index + 1 for index, word in enumerate(words) if word in _FIND_RUNS]
        return [word for word in words[starts[0] :] if word not in (";", "+")] if starts else []
    takes_value = _WRAPPERS.get(program)
    if takes_value is None:
        return []
    at = 1
    while at < len(words):
        word = words[at]
        if word in takes_value:
            at += 2
        elif word.startswith("-") or (program in ("env", "sudo") and _ASSIGNMENT.match(word)):
            at += 1
        else:
            break
    return words[at + 1 :] if program == "timeout" else words[at:]


def _inner_texts(program: str, words: list[str], script: str) -> list[str]:
    if program == "eval":
        return [" ".join(words[1:])]
    if program not in SHELLS:
        return []
    texts = [script] if script else []
    for index, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return [*texts, *words[index + 1 : index + 2]]
        if not word.startswith(("-", "+")):
            break
    return texts
