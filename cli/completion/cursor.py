"""Where the cursor stands in a command line: in which command, at which of its parameters, after what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.completion.command_tree import CommandNode, Parameter

_PROMPT = ("-p", "--prompt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The word at the cursor: `start` is the part before its value (`--model=`), `word` what is typed of the value.

    `given` holds what parameters of the command were given before. Without a parameter the word is the name of a
    command, or of a flag when it begins with a dash.
    """

    path: tuple[str, ...]
    command: CommandNode
    parameter: Parameter | None
    given: Mapping[str, tuple[str, ...]]
    prefix: str
    word: str


class _WordParser:
    """Reads the words before the cursor, one after another."""

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
        """Return the argument whose turn it is."""
        return next((one for one in self.command.arguments if one.is_repeatable or one.name not in self.given), None)

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
            # A wrong command has nothing to offer.
            self.command = CommandNode()

    def _add_value(self, parameter: Parameter, value: str) -> None:
        self.given[parameter.name] = (*self.given.get(parameter.name, ()), value)


def command_name(words: Sequence[str]) -> str | None:
    """Return which command the words before the cursor are about; only that one need be loaded."""
    if is_prompt_shorthand(words):
        return "run"
    return next((word for word in words if not word.startswith("-")), None)


def is_prompt_shorthand(words: Sequence[str]) -> bool:
    """Say whether this is `agent … -p PROMPT`, which is `agent run`."""
    return bool(words) and words[0].startswith("-") and any(word in _PROMPT for word in words)


def locate_cursor(tree: CommandNode, words: Sequence[str], word: str) -> Cursor:
    """Return where the cursor stands behind `words`, with `word` begun."""
    reader = _WordParser(tree)
    if is_prompt_shorthand(words):
        reader.feed("run")
        words = _without_prompt(words)
    for one in words:
        reader.feed(one)
    start, parameter = "", reader.pending_option
    if parameter is None and not reader.only_arguments and word.startswith("-"):
        name, equals, value = word.partition("=")
        flag = reader.command.flags.get(name) if equals else None
        if flag and flag.takes_value:
            start, word, parameter = f"{name}=", value, flag
    elif parameter is None and not reader.command.commands:
        parameter = reader.next_argument()
    return Cursor(
        path=reader.path, command=reader.command, parameter=parameter, given=reader.given, prefix=start, word=word
    )


def _without_prompt(words: Sequence[str]) -> list[str]:
    place = next(number for number, word in enumerate(words) if word in _PROMPT)
    return [*words[:place], *words[place + 2 :]]
