"""Checks whether there are plugins. Without any, a run imports no other module about them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.settings import Settings
from agent.config.user_dirs import config_dir
from agent.execution.approvals import PendingQuestions
from agent.run_scope import RunScope
from tooling.entry_points import has_plugins

if TYPE_CHECKING:
    from agent.plugins.load import PluginSet
    from agent.plugins.run_plugins import OpenPlugins
    from tooling.tool_catalog import ToolCatalog

_FOLDER = "plugins"


def plugin_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's plugin folder, which may not exist."""
    return config_dir(environ) / _FOLDER


def find_plugins(environ: Mapping[str, str], settings: Settings) -> "PluginSet | None":
    """Load the plugins of the user and of installed packages; None if there are none."""
    folder = plugin_folder(environ)
    if not has_plugins(folder, sys.path):
        return None
    from agent.plugins.load import load_plugins

    return load_plugins(folder, settings.plugins)


async def open_plugins(
    loaded: "PluginSet | None", settings: Settings, scope: RunScope, questions: PendingQuestions
) -> "OpenPlugins | None":
    """Initialize the plugins of a run."""
    if loaded is None:
        return None
    from agent.plugins.run_plugins import host_of_run, initialize_plugins

    return await initialize_plugins(loaded, host_of_run(scope, questions, settings.plugins))


def load_full_catalog(environ: Mapping[str, str], settings: Settings) -> "ToolCatalog":
    """Load the specs of all tools, those of plugins included."""
    from tooling.tool_catalog import load_catalog

    found = find_plugins(environ, settings)
    return load_catalog(found.tools, found.warnings) if found else load_catalog()
