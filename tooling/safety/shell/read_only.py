"""Recognize shell texts that only read, by a list of programs; doubtful ones count as changing something."""

import json
import re
from functools import cache
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode
from tooling.safety.hidden_characters import has_control_characters, has_invisible_characters
from tooling.safety.shell.command import Command, Redirect, is_unknown
from tooling.safety.shell.reader import ShellReader
from tooling.safety.shell.rules import PATTERNS_DIR
from tooling.safety.shell.state import ShellReading

_READERS_FILE = "readers.json"
_SYSTEM_FOLDERS = ("", "/bin/", "/usr/bin/")
_VERSION = "--version"
_NULL = "/dev/null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A program that only reads, unless an option or a further word makes it write or run something.

    `first` is a pattern for the first word that is not an option; `max_plain` limits the number of such words.
    """

    forbidden: tuple[str, ...] = ()
    max_plain: int | None = None
    first: str = ""


def only_reads(text: str, cwd: Path) -> bool:
    """Return whether every command of a shell text is known to only read."""
    if has_control_characters(text) or has_invisible_characters(text):
        return False
    reader = ShellReader(str(cwd))
    try:
        reader.read(text)
    except RecursionError:
        return False
    return is_only_reading(reader.reading)


def is_only_reading(reading: ShellReading) -> bool:
    """Return whether every command of a text that was read is known to only read."""
    if reading.findings or reading.assigned or not reading.commands:
        return False
    return all(map(_is_reader, reading.commands))


def _is_reader(command: Command) -> bool:
    if not all(map(_is_harmless, command.redirects)) or not command.words:
        return False
    folder = command.words[0].removesuffix(command.program)
    if folder not in _SYSTEM_FOLDERS or command.is_trusted:
        return False
    words = [word for word in command.words if word != "--no-pager"]
    if command.words[1:] == (_VERSION,):
        return True
    name, arguments = command.program, words[1:]
    if name == "git" and arguments:
        name, arguments = f"git {arguments[0]}", arguments[1:]
    known = _load_readers().get(name)
    return known is not None and _is_allowed(known, arguments)


def _is_harmless(redirect: Redirect) -> bool:
    is_descriptor = redirect.operator.endswith("&") and redirect.target.isdecimal()
    return not redirect.writes or redirect.target == _NULL or is_descriptor


def _is_allowed(known: Reader, arguments: list[str]) -> bool:
    is_limited = bool(known.forbidden or known.first) or known.max_plain is not None
    if is_limited and any(map(is_unknown, arguments)):
        return False
    plain = [word for word in arguments if not word.startswith("-") or word == "-"]
    if known.max_plain is not None and len(plain) > known.max_plain:
        return False
    if known.first and not (plain and re.fullmatch(known.first, plain[0])):
        return False
    return not any(_is_option(word, option) for word in arguments for option in known.forbidden)


def _is_option(word: str, option: str) -> bool:
    """Return whether a word is an option: with a value, abbreviated, or a letter among joined ones."""
    if not word.startswith("-") or word in ("-", "--"):
        return False
    if word.startswith("--"):
        name = word.partition("=")[0]
        return name.startswith(option) or (option.startswith("--") and option.startswith(name))
    return word.startswith(option) or (len(option) == 2 and option[1] in word[1:])


@cache
def _load_readers() -> dict[str, Reader]:
    data = json.loads((PATTERNS_DIR / _READERS_FILE).read_text(encoding="utf-8"))
    return {name: decode(Reader, reader) for name, reader in data["readers"].items()}
