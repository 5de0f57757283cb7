"""Opening the REPL: the prompt is on the screen before anything heavy is loaded."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

from agent.config.places import config_dir, os_environ
from agent.version import VERSION
from agent.vocabulary.errors import AgentError
from cli.progress import wants_colour
from cli.repl.commands import COMMANDS, own_command
from cli.repl.own_files import own_commands
from cli.repl.place import ReplPlace
from cli.repl.repl import Repl
from cli.repl.slash import SlashCommand
from cli.screen.paint import Paint


def open_repl(flags: Mapping[str, object], cwd: Path | None = None) -> int:
    """Talk with the person until they leave; return the exit code."""
    environ = os_environ()
    place = ReplPlace(environ=environ, cwd=(cwd or Path.cwd()).resolve(), flags=dict(flags))
    paint = Paint(has_colour=wants_colour(environ))
    return asyncio.run(_talk(place, paint))


async def _talk(place: ReplPlace, paint: Paint) -> int:
    own, problem = _own_commands(place)
    repl = Repl(place=place, paint=paint, commands=(*COMMANDS, *own))
    threading.Thread(target=place.warm_up, daemon=True, name="warm-up").start()
    greeting = f"Windlass {VERSION} · /help lists commands, Ctrl-D leaves\n"
    return await repl.talk(greeting + (paint("warn", f"warning: {problem}\n") if problem else ""))


def _own_commands(place: ReplPlace) -> tuple[list[SlashCommand], str]:
    """Return the person's own commands; a name that is ours already, or a file that will not do, is a warning."""
    try:
        found = own_commands(config_dir(place.environ))
    except AgentError as error:
        return [], error.message
    taken = {command.name for command in COMMANDS}
    doubled = [own.name for own in found if own.name in taken]
    problem = f"there is already a command /{doubled[0]}; yours is left out" if doubled else ""
    return [own_command(own) for own in found if own.name not in taken], problem
