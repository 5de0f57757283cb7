"""Parses a command line up to its command: help, typos, a request for the prompt, empty values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agent.vocabulary.errors import UsageError
from cli.prompt_flags import VALUE_FLAGS
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from cli.completion.command_tree import CommandNode

HELP_HINT = "`agent help` lists the commands"
_HELP_FLAGS = ("-h", "--help")
# Without a value the program chooses one; the word after the flag is the task.
_OPTIONAL_VALUES = ("--worktree", "--rehearse")
# The same, unless the word after it is the name of such a file.
_OPTIONAL_FILE, _FILE_SUFFIXES = "--manifest", (".toml", ".json")
# Commands that users of other agents try.
_PROMPT_COMMANDS = ("init", "review", "compact", "clear", "cost", "context", "redo", "rewind", "model")
_KEY_HINT = "set an API key such as OPENAI_API_KEY, or save one: agent config set keys.openai -"
_OTHER_COMMANDS = {
    "login": _KEY_HINT,
    "auth": _KEY_HINT,
    "setup": "`agent` alone asks for a model, `agent doctor` checks your setup",
    "chat": "`agent` alone opens the prompt",
    "version": "agent --version",
    "history": "`agent sessions` lists sessions, `agent runs` lists runs",
    "models": "`/model` at the prompt lists models; to set the default: agent config set model NAME",
    "update": "pip install --upgrade windlass",
    "upgrade": "pip install --upgrade windlass",
    **{name: f"`/{name}` is a command of the prompt, which `agent` alone opens" for name in _PROMPT_COMMANDS},
    "diff": "`/diff` at the prompt, or: agent sessions diff SESSION",
    "undo": "`/undo` at the prompt, or: agent sessions undo SESSION",
}
_ENDING_FLAGS = (*_HELP_FLAGS, "--version", "--install-completion", "--show-completion")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The command, None for the prompt, with its arguments; `request` is the first one of the prompt."""

    command: str | None
    arguments: list[str]
    request: str = ""


def read_command_line(arguments: Sequence[str], defaults: Mapping[str, str]) -> CommandLine:
    """Find the command; `defaults` maps all commands to the default subcommand of a group, or to nothing."""
    words = _expand_help(_expand_prompt_flag(list(arguments)))
    at = next(_positionals(words), None)
    if at is None:
        return CommandLine(command=None, arguments=words)
    name, before, after = words[at], words[:at], words[at + 1 :]
    if any(word in _ENDING_FLAGS for word in before):
        return CommandLine(command=None, arguments=before)
    if name not in defaults:
        return _read_request(words, at, defaults)
    if before:
        raise UsageError(f"{before[0]} before a command applies only to the prompt", f"put it after `agent {name}`")
    is_alone = not after or (after[0].startswith("-") and after[0] not in _HELP_FLAGS)
    subcommand = [defaults[name]] if defaults[name] and is_alone else []
    return CommandLine(command=name, arguments=[name, *subcommand, *after])


def check_values(arguments: Sequence[str], tree: "CommandNode") -> None:
    """Refuse flags with an empty value: it comes from an unset variable and is never intended."""
    node, previous = tree, ""
    for word in arguments:
        if word == "--":
            return
        flag, _, value = word.partition("=")
        may_be_empty = flag in (*_OPTIONAL_VALUES, _OPTIONAL_FILE)
        is_empty = "=" in word and flag in node.flags and not value.strip() and not may_be_empty
        parameter = node.flags.get(previous)
        if parameter and parameter.takes_value and not word.strip():
            flag, is_empty = previous, True
        if is_empty:
            raise UsageError(f"{flag}: the value is empty", f"give a value, or leave {flag} out")
        node, previous = node.commands.get(word, node), word


def unknown_command(word: str, commands: Sequence[str]) -> UsageError:
    """Return the error for an unknown command, with the nearest one if there is one."""
    if word in _OTHER_COMMANDS:
        return UsageError(f"unknown command {word!r}", _OTHER_COMMANDS[word])
    near = nearest(word, [*commands, "help"])
    return UsageError(f"unknown command {word!r}{f', did you mean {near}?' if near else ''}", HELP_HINT)


def nearest(word: str, commands: Sequence[str]) -> str:
    """Return the command or flag closest to a mistyped word; a third of its letters may be wrong."""
    distance, found = min((_edit_distance(word, command), command) for command in commands)
    return found if distance <= max(1, len(word) // 3) else ""


def _edit_distance(one: str, other: str) -> int:
    """Return the number of insertions, deletions, changes and swaps of adjacent letters."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def _expand_prompt_flag(arguments: list[str]) -> list[str]:
    """Turn `agent … -p PROMPT …` into `agent run … PROMPT …`; the prompt may also be elsewhere on the line."""
    first = arguments[0] if arguments else ""
    short = next((flag for flag in ("-p", "--prompt") if flag in arguments), None)
    if short and (first.startswith("-") or " " in first):
        at = arguments.index(short)
        prompt = [word for word in arguments[at + 1 : at + 2] if not _is_flag(word)]
        rest = [*arguments[:at], *arguments[at + 1 + len(prompt) :]]
        return _expand_prompt_flag(["run", *rest, *(["--", *prompt] if prompt else [])])
    if first == "plan":
        return _expand_optional_file(arguments)
    if first in ("run", "task") or first.startswith("-") or " " in first:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        arguments = [f"{word}=" if word in _OPTIONAL_VALUES and at < end else word for at, word in enumerate(arguments)]
    # The shell may be omitted, but click has no options with an optional value.
    return [*arguments, ""] if arguments[-1:] in (["--install-completion"], ["--show-completion"]) else arguments


def _is_flag(word: str) -> bool:
    """Whether a word is a flag, and not a text that begins with a dash."""
    return word.startswith("-") and word != "-" and " " not in word.partition("=")[0]


def _expand_optional_file(arguments: list[str]) -> list[str]:
    """Give `agent plan --manifest` an empty value if no file follows: click has no options with an optional value."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    following = [*arguments[1:], ""]
    return [
        f"{word}=" if word == _OPTIONAL_FILE and at < end and not following[at].endswith(_FILE_SUFFIXES) else word
        for at, word in enumerate(arguments)
    ]


def _expand_help(arguments: list[str]) -> list[str]:
    """Turn `agent help COMMAND` into `agent COMMAND --help`."""
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


def _positionals(words: Sequence[str]) -> Iterator[int]:
    """Yield the positions of the words that are neither flags of `agent` itself nor their values."""
    is_value = are_flags_over = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif are_flags_over or not word.startswith("-") or word == "-":
            yield index
        elif word == "--":
            are_flags_over = True
        else:
            is_value = word in VALUE_FLAGS


def _read_request(words: Sequence[str], at: int, commands: Mapping[str, str]) -> CommandLine:
    """Treat one text that is not a command as a request; a single word may be a mistake."""
    text = words[at]
    if len(text.split()) > 1 or "--" in words[:at]:
        others = list(_positionals(words))[1:]
        if others:
            raise UsageError(f"expected one request, but {words[others[0]]!r} is a second one", "quote it as one text")
        rest = [word for index, word in enumerate(words) if index != at and word != "--"]
        return CommandLine(command=None, arguments=rest, request=text.strip())
    error = unknown_command(text, list(commands))
    if text in _OTHER_COMMANDS or nearest(text, [*commands, "help"]):
        raise error
    if len(list(_positionals(words))) > 1:
        raise UsageError(error.message, f'{HELP_HINT}; put a request in quotes: agent "…"')
    return CommandLine(command=None, arguments=[*words[:at], *words[at + 1 :]], request=text)
