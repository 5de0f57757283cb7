"""The slash commands."""

from cli.repl.repl import Repl
from cli.repl.slash import SlashCommand


def _help(repl: Repl, argument: str) -> None:
    width = max(len(command.name) for command in repl.commands)
    repl.say("\n".join(f"  /{command.name:<{width}}  {command.help}" for command in repl.commands))


def _exit(repl: Repl, argument: str) -> None:
    repl.leave()


COMMANDS = (
    SlashCommand(name="help", help="What there is to type.", run=_help),
    SlashCommand(name="exit", help="Leave.", run=_exit),
)
