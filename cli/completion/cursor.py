"""Locates the cursor in a command line: the command, the parameter, and the values given before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.completion.command_tree import CommandNode, Parameter

_PROMPT = ("-p", "--prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The word at the cursor: `prefix` is the part before its value (`--model=`), `word` the typed part of the value.

    `given` has the values of the command's parameters before the cursor. Without a parameter, the word is the name of
    a command, or of a flag if it starts with a dash.
    """

    path: tuple[str, ...]
    command: CommandNode
    parameter: Parameter | None
    given: Mapping[str, tuple[str, ...]]
    prefix: str
    word: str


class _WordParser:
    """Parses the words before the cursor, one at a time."""

    def __init__(self, command: CommandNode) -> None:
        self.path: tuple[str, ...] = ()
        self.command = command
        self.given: dict[str, tuple[str, ...]] = {}
        self.pending_option: Parameter | None = None
        self.only_arguments = False

    def feed(self, word: str) -> None:
        if self.pending_option:
            self._add_value(self.pending_option, word)
            self.pending_option = None
        elif word == "--" and not self.only_arguments:
            self.only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not self.only_arguments:
            self._parse_flag(word)
        elif self.command.commands:
            self._enter_command(word)
        elif argument := self.next_argument():
            self._add_value(argument, word)

    def next_argument(self) -> Parameter | None:
        """Return the next positional argument that can take a value."""
        arguments = self.command.arguments
        return next(
            (argument for argument in arguments if argument.is_repeatable or argument.name not in self.given), None
        )

    def _parse_flag(self, word: str) -> None:
        name, equals, value = word.partition("=")
        flag = self.command.flags.get(name)
        if flag is None:
            return
        if equals or not flag.takes_value:
            self._add_value(flag, value)
        else:
            self.pending_option = flag

    def _enter_command(self, name: str) -> None:
        if name in self.command.commands:
            self.command = self.command.commands[name]
            self.path, self.given = (*self.path, name), {}
        else:
            # An unknown command has no candidates.
            self.command = CommandNode()

    def _add_value(self, parameter: Parameter, value: str) -> None:
        self.given[parameter.name] = (*self.given.get(parameter.name, ()), value)


def command_name(words: Sequence[str]) -> str | None:
    """Return the command in the words before the cursor; only that one needs to be loaded."""
    if is_prompt_shorthand(words):
        return "run"
    return next((word for word in words if not word.startswith("-")), None)


def is_prompt_shorthand(words: Sequence[str]) -> bool:
    """Whether this is `agent … -p PROMPT`, which is short for `agent run`."""
    return bool(words) and words[0].startswith("-") and any(word in _PROMPT for word in words)


def locate_cursor(tree: CommandNode, words: Sequence[str], word: str) -> Cursor:
    """Return the cursor after `words`, with `word` partly typed."""
    parser = _WordParser(tree)
    if is_prompt_shorthand(words):
        parser.feed("run")
        words = _without_prompt(words)
    for earlier in words:
        parser.feed(earlier)
    prefix, parameter = "", parser.pending_option
    if parameter is None and not parser.only_arguments and word.startswith("-"):
        name, equals, value = word.partition("=")
        flag = parser.command.flags.get(name) if equals else None
        if flag and flag.takes_value:
            prefix, word, parameter = f"{name}=", value, flag
    elif parameter is None and not parser.command.commands:
        parameter = parser.next_argument()
    return Cursor(
        path=parser.path, command=parser.command, parameter=parameter, given=parser.given, prefix=prefix, word=word
    )


def _without_prompt(words: Sequence[str]) -> list[str]:
    index = next(number for number, word in enumerate(words) if word in _PROMPT)
    has_prompt = not any(word.startswith("-") for word in words[index + 1 : index + 2])
    return [*words[:index], *words[index + 1 + has_prompt :]]
