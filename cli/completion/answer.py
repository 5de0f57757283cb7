"""One TAB: the words before the cursor in, what can stand there out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent.config.places import os_environ
from agent.vocabulary.errors import AgentError
from cli.application import application
from cli.completion.command_tree import Command, tree_of
from cli.completion.cursor import Cursor, command_of, cursor_in
from cli.completion.shells import bash_lines, bash_words, plain_lines
from cli.completion.values import Asked, Value, values_for

Kind: TypeAlias = Literal["words", "files", "folders", "plans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the shell shall offer: words of ours, or files by its own habits."""

    kind: Kind = "words"
    values: tuple[Value, ...] = ()


def answer(arguments: Sequence[str]) -> int:
    """Answer a shell's question: `bash LINE WORD KEY COLUMNS`, or `zsh WORDS…`, `fish WORDS…`."""
    shell, *rest = arguments or ("",)
    if shell == "bash":
        line, current, key, columns = rest
        words = bash_words(line)
        reply = reply_to(words)
        lines = bash_lines(reply.values, typed=words[-1], current=current, key=key, columns=columns)
    else:
        reply = reply_to(rest)
        lines = plain_lines(reply.values)
    sys.stdout.buffer.write("\n".join([reply.kind, *lines, ""]).encode("utf-8", "replace"))
    sys.stdout.flush()
    return 0


def reply_to(words: Sequence[str]) -> Reply:
    """Return what can stand in the place of the last word; when in doubt nothing."""
    *before, word = words or ("",)
    try:
        tree = tree_of(application(command_of(before)))
        return _reply(cursor_in(tree, before, word))
    except AgentError:
        # A settings file that cannot be read is told of when a command is run, not while it is typed.
        return Reply()


def _reply(cursor: Cursor) -> Reply:
    parameter = cursor.parameter
    if parameter is None:
        values = _flags(cursor) if cursor.word.startswith("-") else _commands(cursor.command)
        return Reply(values=_matching(values, cursor))
    asked = Asked(path=cursor.path, parameter=parameter, word=cursor.word, given=cursor.given, environ=os_environ())
    found = values_for(asked)
    return Reply(kind=found) if isinstance(found, str) else Reply(values=_matching(found, cursor))


def _flags(cursor: Cursor) -> Iterable[Value]:
    """Return the flags that may still be given, each as it reads best."""
    for parameter in cursor.command.parameters:
        if parameter.flags and (parameter.is_many or parameter.name not in cursor.given):
            longest = max(parameter.flags, key=len)
            fitting = longest if longest.startswith(cursor.word) else cursor.word
            if fitting in parameter.flags:
                yield Value(word=fitting, about=parameter.help)


def _commands(command: Command) -> Iterable[Value]:
    return (Value(word=name, about=one.help) for name, one in command.commands.items())


def _matching(values: Iterable[Value], cursor: Cursor) -> tuple[Value, ...]:
    fitting = {value.word: value for value in values if value.word.startswith(cursor.word) and value.word.isprintable()}
    return tuple(replace(value, word=cursor.start + value.word) for value in fitting.values())
