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
# Commands that users of other agents try.
OTHER_COMMANDS = {
    **dict.fromkeys(("new", "reset"), "/clear"),
    **dict.fromkeys(("status", "usage", "tokens"), "/cost, /context and the status line"),
    **dict.fromkeys(("config", "settings"), "`agent config` in a shell"),
    **dict.fromkeys(("permissions", "approvals", "allowed-tools"), "/mode and /rules"),
    **dict.fromkeys(("login", "logout"), "`agent config set keys.openai -` in a shell"),
    **dict.fromkeys(("add", "read", "read-only", "mention"), "@path in a request"),
    **dict.fromkeys(("ask", "architect"), "/mode plan, or Shift-Tab"),
    **dict.fromkeys(("code", "chat-mode"), "/mode"),
    **dict.fromkeys(("test", "git"), "a line that starts with !"),
    **dict.fromkeys(("restore", "checkpoint"), "/rewind"),
    "history": "Ctrl-R",
    "copy": "/export",
    "editor": "Ctrl-X Ctrl-E",
    "vim": "`agent config set editing_mode vi` in a shell",
    "commit": "a request: ask for the commit",
}


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
    if name in OTHER_COMMANDS:
        return UsageError(f"unknown command /{name}", f"here it is {OTHER_COMMANDS[name]}")
    suggestion = did_you_mean(f"/{name}", [f"/{command.name}" for command in commands])
    return UsageError(f"unknown command /{name}{suggestion}", "/help lists all commands")
