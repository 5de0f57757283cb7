"""Opening the REPL: the prompt is on the screen before anything heavy is loaded."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.catalogue import read_catalogue
from agent.config.places import config_dir, os_environ
from agent.version import VERSION
from cli.progress import wants_colour
from cli.repl.commands import COMMANDS, own_command, plugin_command
from cli.repl.own_files import own_commands
from cli.repl.place import ReplPlace
from cli.repl.repl import Repl
from cli.screen.paint import Paint, ground, wrapped

if TYPE_CHECKING:
    from cli.repl.repl import Face


def open_repl(flags: Mapping[str, object], cwd: Path | None = None) -> int:
    """Talk with the person until they leave; return the exit code."""
    environ = os_environ()
    place = ReplPlace(environ=environ, cwd=(cwd or Path.cwd()).resolve(), flags=dict(flags))
    theme = ground(place.loaded().settings.theme, environ)
    paint = Paint(has_colour=wants_colour(environ, sys.stdout), theme=theme)
    return asyncio.run(_talk(place, paint))


async def _talk(place: ReplPlace, paint: Paint) -> int:
    repl = Repl(place=place, paint=paint, commands=COMMANDS, face=_face(place))
    repl.load(_load_the_rest(repl))
    greeting = f"Windlass {VERSION} · /help lists commands, Ctrl-D leaves"
    return await repl.talk("\n".join(wrapped(greeting, repl.face.columns)))


def _face(place: ReplPlace) -> "Callable[[Repl], Face]":
    """Return what fits the terminal."""
    if place.term in ("", "dumb"):
        from cli.repl.line_face import LineFace

        return LineFace
    from cli.repl.drawn_face import DrawnFace

    return DrawnFace


async def _load_the_rest(repl: Repl) -> None:
    """Load what the first request needs, and commands that are not ours, behind the prompt."""
    repl.add_commands(map(own_command, own_commands(config_dir(repl.place.environ), repl.warn)))
    await asyncio.to_thread(repl.place.warm_up)
    catalogue = await asyncio.to_thread(read_catalogue)
    repl.add_commands(map(plugin_command, catalogue.commands))
