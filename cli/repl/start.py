"""Opening the REPL: the prompt is on the screen before anything heavy is loaded."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.places import config_dir, data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.version import VERSION
from cli.repl.commands.builtin import COMMANDS, own_command, plugin_command
from cli.repl.commands.session_commands import enter
from cli.repl.commands.user_commands import own_commands
from cli.repl.repl import Repl
from cli.repl.state import ReplPlace
from cli.run.progress import wants_colour
from cli.screen.colors import Paint, ground, wrapped
from tooling.tool_catalog import read_catalogue

if TYPE_CHECKING:
    from cli.repl.repl import Face


def open_repl(flags: Mapping[str, object], cwd: Path | None = None, session: str | None = None) -> int:
    """Talk with the person until they leave; return the exit code. The session "" is the last one."""
    environ = os_environ()
    session = None if session is None else _found(session, environ)
    place = ReplPlace(environ=environ, cwd=(cwd or Path.cwd()).resolve(), flags=dict(flags))
    theme = ground(place.loaded().settings.theme, environ)
    paint = Paint(has_colour=wants_colour(environ, sys.stdout), theme=theme)
    return asyncio.run(_talk(place, paint, session))


def _found(name: str, environ: Mapping[str, str]) -> str:
    from agent.sessions.resume.lookup import last_session

    store = SessionStore(data_dir(environ))
    return (store.existing(name) if name else last_session(store)).id


async def _talk(place: ReplPlace, paint: Paint, session: str | None) -> int:
    repl = Repl(place=place, paint=paint, commands=COMMANDS, face=_face(place))
    repl.load(_load_the_rest(repl))
    if session:
        repl.start(_begin_in(repl, session))
    greeting = f"Windlass {VERSION} · /help lists commands, Ctrl-D leaves"
    return await repl.talk("\n".join(wrapped(greeting, repl.face.columns)))


def _face(place: ReplPlace) -> "Callable[[Repl], Face]":
    """Return what fits the terminal."""
    if place.term in ("", "dumb"):
        from cli.repl.ui.plain_ui import LineFace

        return LineFace
    from cli.repl.ui.tui import DrawnFace

    return DrawnFace


async def _begin_in(repl: Repl, session: str) -> None:
    enter(repl, session)


async def _load_the_rest(repl: Repl) -> None:
    """Load what the first request needs, and commands that are not ours, behind the prompt."""
    repl.add_commands(map(own_command, own_commands(config_dir(repl.place.environ), repl.warn)))
    await asyncio.to_thread(repl.place.warm_up)
    catalogue = await asyncio.to_thread(read_catalogue)
    repl.add_commands(map(plugin_command, catalogue.commands))
