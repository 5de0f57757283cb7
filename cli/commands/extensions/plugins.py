"""`agent plugins`: list the plugins, and start a new one."""

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.plugins.find import find_plugins, plugin_folder
from agent.plugins.load import LoadedPlugin, PluginProblem, PluginSet
from agent.vocabulary import exit_codes
from cli.messages.translate import translate
from cli.pages.columns import Column, render_table
from cli.pages.pages import print_json, print_lines, print_table, stdout_colors, terminal_width

app = typer.Typer(no_args_is_help=True)
NO_PLUGINS = "(no plugins)"
CREATED = "created {folder}\ntest it with: {test}\n`agent plugins list` shows it, `agent tools list` its tool"


@app.command("list")
def list_plugins(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the plugins, what they add, and why one was skipped."""
    environ = os_environ()
    found = find_plugins(environ, load_settings(environ=environ).settings) or PluginSet()
    if as_json:
        print_json([*map(_record, found.plugins), *map(_problem_record, found.problems)])
    elif found.plugins or found.problems:
        print_table(_table(found))
    else:
        print_lines([NO_PLUGINS])
    if any(problem.is_skipped for problem in found.problems):
        raise typer.Exit(exit_codes.FAILED)


@app.command("new")
def new_plugin(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plugin.")]) -> None:
    """Create a plugin in your settings folder. With a tool, a slash command and a test."""
    from agent.plugins.skeleton import create_plugin

    folder = create_plugin(plugin_folder(os_environ()), name, sys.executable)
    test = shlex.join((sys.executable, "-m", "unittest", "discover", str(folder)))
    print_lines(translate(CREATED.format(folder=folder, test=test)).splitlines())


def _record(loaded: LoadedPlugin) -> dict[str, object]:
    plugin = loaded.plugin
    return {
        "name": loaded.name,
        "where": loaded.where,
        "state": "ok",
        "tools": [tool.spec.name for tool in loaded.tools],
        "commands": [command.name for command in plugin.commands],
        "hooks": [hook.name for hook in plugin.hooks],
        "models": list(plugin.models),
        "search": list(plugin.search),
    }


def _problem_record(problem: PluginProblem) -> dict[str, object]:
    state = "skipped" if problem.is_skipped else "warning"
    return {"name": problem.name, "where": problem.where, "state": state, "reason": problem.reason}


def _adds(loaded: LoadedPlugin) -> str:
    """Describe briefly what a plugin adds."""
    plugin = loaded.plugin
    parts: Sequence[tuple[str, Sequence[str]]] = (
        ("tools", [tool.spec.name for tool in loaded.tools]),
        ("commands", [f"/{command.name}" for command in plugin.commands]),
        ("hooks", [hook.name for hook in plugin.hooks]),
        ("models", [f"{prefix}/…" for prefix in plugin.models]),
        ("search", list(plugin.search)),
    )
    return "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names)


def _table(found: PluginSet) -> list[str]:
    problems = found.problems
    listed: list[LoadedPlugin | PluginProblem] = [*found.plugins, *problems]
    states = ["ok" for _ in found.plugins] + ["skipped" if problem.is_skipped else "warning" for problem in problems]
    columns = [
        Column(header="PLUGIN", cells=[one.name for one in listed], tone="accent"),
        Column(header="STATE", cells=states, tones=["good" if state == "ok" else "bad" for state in states]),
        Column(
            header="ADDS",
            cells=[*map(_adds, found.plugins), *(problem.reason for problem in problems)],
            min_width=20,
        ),
        Column(header="FROM", cells=[one.where for one in listed], tone="quiet", drop_priority=1),
    ]
    return render_table(columns, terminal_width(), stdout_colors())
