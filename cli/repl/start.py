"""Opens the REPL: the prompt is visible before anything heavy is imported."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.settings import Settings
from agent.config.user_commands import load_user_commands
from agent.config.user_dirs import config_dir, current_folder, data_dir, os_environ
from agent.plugins.find import find_plugins
from agent.sessions.store import SessionStore
from agent.version import VERSION
from agent.vocabulary.errors import InputError
from cli.repl.commands.builtin import COMMANDS, plugin_command
from cli.repl.commands.request_commands import user_command
from cli.repl.commands.session_commands import switch_to
from cli.repl.repl import Repl
from cli.repl.state import ReplState
from cli.run.progress import wants_color
from cli.screen.colors import Paint, resolve_theme, wrap
from tooling.tool_catalog import load_catalog

if TYPE_CHECKING:
    from cli.repl.repl import ReplUi
    from cli.run.work_folder import WorkFolder

QUIT_HINT = "Ctrl-D quits"
GREETING = f"Windlass {VERSION} · /help lists commands, {QUIT_HINT}"


def open_repl(
    flags: Mapping[str, object],
    cwd: Path | None = None,
    session: str | None = None,
    *,
    profile: str | None = None,
    request: str = "",
    worktree: str | None = None,
) -> int:
    """Run the REPL and return the exit code; the session "" is the folder's last one, `request` is sent at once.

    `worktree` names the git worktree to work in; "" is a new one.
    """
    if cwd and not cwd.is_dir():
        raise InputError(f"{cwd} is not an existing folder")
    environ = os_environ()
    folder = (cwd or current_folder()).resolve()
    session = None if session is None else _find_session(session, folder, environ)
    place = _open_place(folder, session if cwd is None else None, worktree, environ)
    state = ReplState(
        environ=environ, cwd=place.path or folder, worktree=place.worktree, flags=dict(flags), profile=profile
    )
    theme = resolve_theme(state.read_settings().settings.theme, environ)
    paint = Paint(has_color=wants_color(environ, sys.stdout), theme=theme)
    exit_code = asyncio.run(_run_repl(state, paint, session, request))
    if state.worktree:
        from cli.run.worktree_choice import finish_worktree

        title = state.last_request or state.worktree.name
        finish_worktree(state.worktree, environ, title, may_remove=True, is_quiet=False, can_ask=True)
    return exit_code


def _open_place(folder: Path, session: str | None, worktree: str | None, environ: Mapping[str, str]) -> "WorkFolder":
    """Return the folder to work in: a worktree if requested, or if the session used one."""
    from cli.run.work_folder import WorkFolder, open_worktree

    if worktree is not None:
        return open_worktree(worktree, folder, environ)
    if session:
        from agent.sessions.views.session_summary import read_head
        from agent.workspace.worktrees import Worktrees

        before = Path(read_head(SessionStore(data_dir(environ)).find(session)).cwd)
        if used := Worktrees(data_dir(environ), environ).containing(before):
            return WorkFolder(path=before, worktree=used)
    return WorkFolder(path=folder)


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
        if repl.plugins:
            await repl.plugins.close()
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
    if (config_dir(repl.state.environ) / "mcp.json").exists():
        from cli.repl.commands.mcp_prompts import prompt_commands

        repl.add_commands(await asyncio.to_thread(prompt_commands, repl.state.environ))
    settings = repl.state.read_settings().settings
    loaded = await asyncio.to_thread(find_plugins, repl.state.environ, settings)
    if loaded is None:
        return
    from cli.repl.plugins import open_prompt_plugins

    repl.plugins = await open_prompt_plugins(repl, loaded)
    repl.add_commands(repl.plugins.commands)
    for plugin in loaded.plugins:
        if plugin.folder:
            repl.add_commands(map(user_command, load_user_commands(plugin.folder, repl.warn)))
    offered = (command for command in load_catalog(loaded.tools).commands if _is_allowed(command.tool, settings))
    repl.add_commands(map(plugin_command, offered))


def _is_allowed(tool: str, settings: Settings) -> bool:
    return settings.tools is None or tool in settings.tools
