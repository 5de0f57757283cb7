"""Opening the REPL: the prompt is on the screen before anything heavy is loaded."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

from agent.config.places import os_environ
from agent.version import VERSION
from cli.progress import wants_colour
from cli.repl.commands import COMMANDS
from cli.repl.place import ReplPlace
from cli.repl.repl import Repl
from cli.screen.paint import Paint


def open_repl(flags: Mapping[str, object], cwd: Path | None = None) -> int:
    """Talk with the person until they leave; return the exit code."""
    environ = os_environ()
    place = ReplPlace(environ=environ, cwd=(cwd or Path.cwd()).resolve(), flags=dict(flags))
    paint = Paint(has_colour=wants_colour(environ))
    return asyncio.run(_talk(place, paint))


async def _talk(place: ReplPlace, paint: Paint) -> int:
    repl = Repl(place=place, paint=paint, commands=COMMANDS)
    threading.Thread(target=place.warm_up, daemon=True, name="warm-up").start()
    return await repl.run(f"Windlass {VERSION} · /help lists commands, Ctrl-D leaves\n")
