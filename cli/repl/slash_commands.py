"""The SlashCommand type, and parsing of lines that start with a slash."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent.vocabulary.errors import UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

if TYPE_CHECKING:
    from cli.repl.repl import Repl


Candidate: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """One command; an empty `usage` means that it takes no arguments, `is_replaceable` that the user may replace it.

    `complete` gets the words typed after the command and returns candidates for the last one, each with a description.
    """

    name: str
    help: str
    run: Callable[["Repl", str], Awaitable[None] | None]
    usage: str = ""
    complete: Callable[["Repl", Sequence[str]], Iterable[Candidate]] | None = None
    is_replaceable: bool = False


def parse_command(line: str) -> tuple[str, str]:
    """Split a line that starts with a slash into command name and argument."""
    name, _, argument = line[1:].partition(" ")
    return name, argument.strip()


def is_command_line(line: str, commands: Iterable[SlashCommand]) -> bool:
    """Whether a line that starts with a slash is a command, and not a request that starts with a path."""
    name, _ = parse_command(line)
    return any(command.name == name for command in commands) or not (
        "/" in name or (name and Path(f"/{name}").exists())
    )


def unknown_command(name: str, commands: Sequence[SlashCommand]) -> UsageError:
    """Build the error for a name that is no command, suggesting the closest match."""
    suggestion = did_you_mean(f"/{name}", [f"/{command.name}" for command in commands])
    return UsageError(f"unknown command /{name}{suggestion}", "/help lists all commands")
