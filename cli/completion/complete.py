"""One TAB: the words before the cursor in, what can stand there out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent.config.user_dirs import os_environ
from agent.vocabulary.errors import AgentError
from cli.application import build_application
from cli.completion.command_tree import CommandNode, build_tree
from cli.completion.cursor import Cursor, command_name, locate_cursor
from cli.completion.shells import bash_lines, bash_words, plain_lines
from cli.completion.values import CompletionItem, CompletionRequest, values_for

Kind: TypeAlias = Literal["words", "files", "folders", "plans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """What the shell shall offer: words of ours, or files by its own habits."""

    kind: Kind = "words"
    items: tuple[CompletionItem, ...] = ()


def print_completions(arguments: Sequence[str]) -> int:
    """Answer a shell's question: `bash LINE WORD KEY COLUMNS`, or `zsh WORDS…`, `fish WORDS…`."""
    shell, *rest = arguments or ("",)
    if shell == "bash":
        line, current, key, columns = rest
        words = bash_words(line)
        reply = complete_words(words)
        lines = bash_lines(reply.items, typed=words[-1], current=current, key=key, columns=columns)
    else:
        reply = complete_words(rest)
        lines = plain_lines(reply.items)
    sys.stdout.buffer.write("\n".join([reply.kind, *lines, ""]).encode("utf-8", "replace"))
    sys.stdout.flush()
    return 0


def complete_words(words: Sequence[str]) -> Completions:
    """Return what can stand in the place of the last word; when in doubt nothing."""
    *before, word = words or ("",)
    try:
        tree = build_tree(build_application(command_name(before)))
        return _complete_at(locate_cursor(tree, before, word))
    except AgentError:
        # A settings file that cannot be read is told of when a command is run, not while it is typed.
        return Completions()


def _complete_at(cursor: Cursor) -> Completions:
    parameter = cursor.parameter
    if parameter is None:
        values = _flag_items(cursor) if cursor.word.startswith("-") else _command_items(cursor.command)
        return Completions(items=_filter_items(values, cursor))
    asked = CompletionRequest(
        path=cursor.path, parameter=parameter, word=cursor.word, given=cursor.given, environ=os_environ()
    )
    found = values_for(asked)
    return Completions(kind=found) if isinstance(found, str) else Completions(items=_filter_items(found, cursor))


def _flag_items(cursor: Cursor) -> Iterable[CompletionItem]:
    """Return the flags that may still be given, each as it reads best."""
    for parameter in cursor.command.parameters:
        if parameter.flags and (parameter.is_repeatable or parameter.name not in cursor.given):
            longest = max(parameter.flags, key=len)
            fitting = longest if longest.startswith(cursor.word) else cursor.word
            if fitting in parameter.flags:
                yield CompletionItem(word=fitting, description=parameter.help)


def _command_items(command: CommandNode) -> Iterable[CompletionItem]:
    return (CompletionItem(word=name, description=one.help) for name, one in command.commands.items())


def _filter_items(values: Iterable[CompletionItem], cursor: Cursor) -> tuple[CompletionItem, ...]:
    fitting = {value.word: value for value in values if value.word.startswith(cursor.word) and value.word.isprintable()}
    return tuple(replace(value, word=cursor.prefix + value.word) for value in fitting.values())
