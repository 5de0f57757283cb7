"""Opens the REPL: the prompt is on the screen before anything heavy is loaded."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.user_dirs import config_dir, current_folder, data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.version import VERSION
from agent.vocabulary.errors import InputError
from cli.repl.commands.builtin import COMMANDS, plugin_command
from cli.repl.commands.request_commands import user_command
from cli.repl.commands.session_commands import switch_to
from cli.repl.commands.user_commands import load_user_commands
from cli.repl.repl import Repl
from cli.repl.state import ReplState
from cli.run.progress import wants_color
from cli.screen.colors import Paint, resolve_theme, wrap
from tooling.tool_catalog import load_catalog

if TYPE_CHECKING:
    from cli.repl.repl import ReplUi

QUIT_HINT = "Ctrl-D quits"
GREETING = f"Windlass {VERSION} · /help lists commands, {QUIT_HINT}"


def open_repl(
    flags: Mapping[str, object],
    cwd: Path | None = None,
    session: str | None = None,
    *,
    profile: str | None = None,
    request: str = "",
) -> int:
    """Run the REPL and return the exit code; the session "" is the folder's last one, `request` is sent at once."""
    if cwd and not cwd.is_dir():
        raise InputError(f"{cwd} is not an existing folder")
    environ = os_environ()
    folder = (cwd or current_folder()).resolve()
    session = None if session is None else _find_session(session, folder, environ)
    state = ReplState(environ=environ, cwd=folder, flags=dict(flags), profile=profile)
    theme = resolve_theme(state.read_settings().settings.theme, environ)
    paint = Paint(has_color=wants_color(environ, sys.stdout), theme=theme)
    return asyncio.run(_run_repl(state, paint, session, request))


def _find_session(name: str, folder: Path, environ: Mapping[str, str]) -> str:
    from agent.sessions.resume.lookup import last_session

    store = SessionStore(data_dir(environ))
    return (store.find(name) if name else last_session(store, folder)).id


async def _run_repl(state: ReplState, paint: Paint, session: str | None, request: str) -> int:
    repl = Repl(state=state, paint=paint, commands=COMMANDS, ui=_choose_ui(state))
    repl.load_in_background(_load_commands(repl))
    if session or request:
        repl.spawn(_begin(repl, session, request))
    try:
        return await repl.run_until_exit("\n".join(wrap(GREETING, repl.ui.columns)))
    finally:
        await state.close()


def _choose_ui(state: ReplState) -> "Callable[[Repl], ReplUi]":
    if state.term in ("", "dumb"):
        from cli.repl.ui.plain_ui import PlainUi

        return PlainUi
    from cli.repl.ui.tui import Tui

    return Tui


async def _begin(repl: Repl, session: str | None, request: str) -> None:
    """Open the session and send the request of the command line."""
    if session:
        switch_to(repl, session)
    if request.startswith("/"):
        repl.accept(request)
    elif request:
        repl.submit(request)


async def _load_commands(repl: Repl) -> None:
    """Load user and plugin commands, and the modules the first request needs."""
    repl.add_commands(map(user_command, load_user_commands(config_dir(repl.state.environ), repl.warn)))
    await asyncio.to_thread(repl.state.warm_up)
    catalog = await asyncio.to_thread(load_catalog)
    repl.add_commands(map(plugin_command, catalog.commands))
