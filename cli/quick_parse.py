"""Parses common command lines of `agent run` without typer, whose import takes longer than all the parsing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, TypeAlias, Union, get_args, get_origin

from cli.options import Argument, Option, declared

Given: TypeAlias = dict[str, object]


class _Unusual(Exception):
    """The line needs typer: for help, an error message, or a rare notation."""


def parse_quickly(command: Callable[..., None], words: Sequence[str]) -> Given | None:
    """Return the value of each parameter of a command, or None if typer must parse the line."""
    try:
        return _parse(command, list(words))
    except (_Unusual, ValueError):
        return None


def _parse(command: Callable[..., None], words: list[str]) -> Given:
    hints = {name: hint for name, hint in command.__annotations__.items() if name != "return"}
    flags = {flag: name for name, hint in hints.items() for flag in _names(hint)}
    given: Given = {**dict.fromkeys(hints), **(command.__kwdefaults__ or {})}
    positionals: list[str] = []
    are_flags_over = False
    while words:
        word = words.pop(0)
        if are_flags_over or not word.startswith("-") or word == "-":
            positionals.append(word)
        elif word == "--":
            are_flags_over = True
        else:
            _take_flag(word, words, flags, hints, given)
    arguments = [name for name, hint in hints.items() if isinstance(declared(hint), Argument)]
    if len(positionals) > len(arguments):
        raise _Unusual
    for name, text in zip(arguments, positionals, strict=False):
        given[name] = _convert(text, _type_of(hints[name]))
    return given


def _take_flag(word: str, words: list[str], flags: dict[str, str], hints: dict[str, object], given: Given) -> None:
    flag, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
    # Anything that is not the exact name of a flag may be several short ones, an abbreviation or a mistake.
    if flag not in flags:
        raise _Unusual
    name = flags[flag]
    wanted = _type_of(hints[name])
    if wanted is bool:
        if equals:
            raise _Unusual
        given[name] = True
        return
    if not equals:
        if not words:
            raise _Unusual
        text = words.pop(0)
    if not text.strip():
        raise _Unusual
    if get_origin(wanted) is list:
        value = _convert(text, get_args(wanted)[0])
        earlier = given[name]
        given[name] = [*(earlier if isinstance(earlier, list) else []), value]
    else:
        given[name] = _convert(text, wanted)


def _names(hint: object) -> tuple[str, ...]:
    mark = declared(hint)
    return mark.names if isinstance(mark, Option) else ()


def _type_of(hint: object) -> object:
    """Return the type of a parameter without its `None`."""
    wanted = get_args(hint)[0]
    if get_origin(wanted) in (Union, UnionType):
        (wanted,) = (one for one in get_args(wanted) if one is not NoneType)
    return wanted


def _convert(text: str, wanted: object) -> object:
    if wanted is str:
        return text
    if wanted is Path:
        return Path(text)
    if wanted is int or wanted is float:
        # Python accepts more notations than users mean, such as 1_000 or nan.
        if not text.isascii() or not text.strip("-+").replace(".", "", 1).isdigit():
            raise _Unusual
        return int(text) if wanted is int else float(text)
    if get_origin(wanted) is Literal and text in get_args(wanted):
        return text
    raise _Unusual
