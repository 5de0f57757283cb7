"""Completes a command line: takes the words up to the cursor, prints candidates as each shell expects them."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import typer
from rich.cells import cell_len

from agent.config.user_dirs import os_environ
from agent.vocabulary.errors import AgentError
from cli.completion.candidates import CompletionItem, CompletionRequest, values_for
from cli.completion.command_tree import CommandNode, build_tree
from cli.completion.cursor import Cursor, command_name, locate_cursor
from cli.screen.colors import clip, to_single_line

Kind: TypeAlias = Literal["words", "files", "folders", "plans"]
# Builds the command line with only the named command loaded.
BuildApplication: TypeAlias = Callable[[str | None], typer.Typer]
# COMP_TYPE in bash when a key inserts one candidate after another (menu completion).
_MENU_COMPLETION = ("37", "42")
_MIN_DESCRIPTION_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """The candidates: words, or a kind of files that the shell completes itself."""

    kind: Kind = "words"
    items: tuple[CompletionItem, ...] = ()


def print_completions(arguments: Sequence[str], build_application: BuildApplication) -> int:
    """Print the candidates for `bash LINE WORD KEY COLUMNS`, `zsh WORDS…` or `fish WORDS…`."""
    shell, *rest = arguments or ("",)
    if shell == "bash":
        line, current, key, columns = rest
        words = bash_words(line)
        completions = complete_words(words, build_application)
        lines = bash_lines(completions.items, typed=words[-1], current=current, key=key, columns=columns)
    else:
        completions = complete_words(rest, build_application)
        lines = plain_lines(completions.items)
    sys.stdout.buffer.write("\n".join([completions.kind, *lines, ""]).encode("utf-8", "replace"))
    sys.stdout.flush()
    return 0


def complete_words(words: Sequence[str], build_application: BuildApplication) -> Completions:
    """Return the candidates for the last word."""
    *before, word = words or ("",)
    try:
        tree = build_tree(build_application(command_name(before)))
        return _complete_at(locate_cursor(tree, before, word))
    except AgentError:
        # An invalid settings file is reported when a command runs, not while it is typed.
        return Completions()


def _complete_at(cursor: Cursor) -> Completions:
    parameter = cursor.parameter
    if parameter is None:
        items = _flag_items(cursor) if cursor.word.startswith("-") else _command_items(cursor.command)
        return Completions(items=_filter_items(items, cursor))
    request = CompletionRequest(
        path=cursor.path, parameter=parameter, word=cursor.word, given=cursor.given, environ=os_environ()
    )
    values = values_for(request)
    return Completions(kind=values) if isinstance(values, str) else Completions(items=_filter_items(values, cursor))


def _flag_items(cursor: Cursor) -> Iterable[CompletionItem]:
    """Yield the flags that can still be given, in their long form unless a short one was typed."""
    for parameter in cursor.command.parameters:
        if parameter.flags and (parameter.is_repeatable or parameter.name not in cursor.given):
            longest = max(parameter.flags, key=len)
            flag = longest if longest.startswith(cursor.word) else cursor.word
            if flag in parameter.flags:
                yield CompletionItem(word=flag, description=parameter.help)


def _command_items(command: CommandNode) -> Iterable[CompletionItem]:
    return (CompletionItem(word=name, description=node.help) for name, node in command.commands.items())


def _filter_items(items: Iterable[CompletionItem], cursor: Cursor) -> tuple[CompletionItem, ...]:
    matching = {item.word: item for item in items if item.word.startswith(cursor.word) and item.word.isprintable()}
    return tuple(replace(item, word=cursor.prefix + item.word) for item in matching.values())


def plain_lines(items: Sequence[CompletionItem]) -> list[str]:
    """Return a line for each candidate: the word, a tab, its description."""
    return [f"{item.word}\t{to_single_line(item.description)}" for item in items]


def bash_lines(items: Sequence[CompletionItem], *, typed: str, current: str, key: str, columns: str) -> list[str]:
    """Return the candidates that replace `current`, the part of the typed word after its last `=` or `:`.

    bash only lists several candidates and inserts their common prefix, so they can carry descriptions. A single one
    is inserted unchanged.
    """
    prefix = typed.removesuffix(current) if current and typed.endswith(current) else typed if not current else ""
    words = [shlex.quote(item.word.removeprefix(prefix)) for item in items]
    if len(words) == 1 or key in _MENU_COMPLETION:
        return words
    width = max(map(cell_len, words), default=0)
    room = (int(columns) if columns.isdecimal() else 80) - width - 5
    if room < _MIN_DESCRIPTION_WIDTH or not any(item.description for item in items):
        return words
    return [
        f"{word:<{width}}  ({clip(item.description, room)})" if item.description else word
        for word, item in zip(words, items, strict=True)
    ]


def bash_words(line: str) -> list[str]:
    """Return the words after the program name, ending with the one at the cursor; open quotes are closed."""
    for ending in ("", "'", '"'):
        try:
            words = shlex.split(line + ending)
            break
        except ValueError:
            continue
    else:
        words = line.split()
    is_between = line[-1:].isspace() and not line.endswith("\\ ") and line.count("'") % 2 == line.count('"') % 2 == 0
    return [*words[1:], ""] if is_between or len(words) < 2 else words[1:]
