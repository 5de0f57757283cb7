"""Commands that begin with a slash: a table somebody can read, with help and completion in one place."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

if TYPE_CHECKING:
    from cli.repl.repl import Repl


Candidate: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """One command: what it is called, what it does, and what its arguments may be; no `usage` means none.

    `complete` gets the words typed behind the command and returns what can stand for the last, each with its meaning.
    """

    name: str
    help: str
    run: Callable[["Repl", str], Awaitable[None] | None]
    usage: str = ""
    complete: Callable[["Repl", Sequence[str]], Iterable[Candidate]] | None = None


def parse_command(line: str) -> tuple[str, str]:
    """Return the name and the argument of a line that begins with a slash."""
    name, _, argument = line[1:].partition(" ")
    return name, argument.strip()


def unknown_command(name: str, commands: Sequence[SlashCommand]) -> str:
    """Say that there is no such command, and which one may be meant."""
    return f"there is no command /{name}{did_you_mean(name, [command.name for command in commands])}; /help lists them"
