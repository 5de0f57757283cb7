"""Commands that begin with a slash: a table somebody can read, with help and completion in one place."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tooling.contract.fact import dataclass
from tooling.contract.shape import nearest

if TYPE_CHECKING:
    from cli.repl.repl import Repl


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """One command: what it is called, what it does, and what its arguments may be."""

    name: str
    help: str
    run: Callable[["Repl", str], Awaitable[None] | None]
    usage: str = ""
    complete: Callable[["Repl"], Iterable[str]] | None = None
    while_running: bool = True


def parsed(line: str) -> tuple[str, str]:
    """Return the name and the argument of a line that begins with a slash."""
    name, _, argument = line[1:].partition(" ")
    return name, argument.strip()


def unknown(name: str, commands: Sequence[SlashCommand]) -> str:
    """Say that there is no such command, and which one may be meant."""
    return f"there is no command /{name}{nearest(name, [command.name for command in commands])}; /help lists them"
