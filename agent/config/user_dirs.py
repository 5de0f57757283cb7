"""Folders of settings and data; the only module that reads the process environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from agent.vocabulary.errors import ConfigError, InputError

_APP = "agent"
# The variables that choose the data folder, the preferred one first.
_DATA_VARIABLES = ("AGENT_SANDBOX", "AGENT_SANDBOX_ROOT")
# They say where everything else is read from, so they cannot be set there.
FOLDER_VARIABLES = ("AGENT_CONFIG_DIR", *_DATA_VARIABLES)
NO_CURRENT_FOLDER = "the current folder no longer exists"
# Annotated because mypy treats sys.platform as a constant and reports other platforms as unreachable.
_PLATFORM: str = sys.platform


def os_environ() -> Mapping[str, str]:
    """Return a copy of the process environment."""
    return dict(os.environ)


def current_folder() -> Path:
    """Return the current folder. Raises InputError if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InputError(NO_CURRENT_FOLDER, "change to another one, or name one with -C DIR") from error


def config_dir(environ: Mapping[str, str]) -> Path:
    """Return the settings folder: AGENT_CONFIG_DIR, or the platform's default."""
    if chosen := environ.get("AGENT_CONFIG_DIR"):
        return _absolute(chosen, environ)
    if _PLATFORM == "linux":
        return _xdg(environ, "XDG_CONFIG_HOME", ".config")
    # Importing platformdirs takes as long as a complete `--version`; Linux does not need it.
    import platformdirs

    return platformdirs.user_config_path(_APP, appauthor=False)


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's settings file, which may not exist."""
    return config_dir(environ) / "config.toml"


def data_dir(environ: Mapping[str, str]) -> Path:
    """Return the folder of sessions and memory; create it if missing, accessible to this user only."""
    folder = data_path(environ)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot create the data folder {folder}: {error.strerror}",
            "set AGENT_SANDBOX to a folder you can write to",
        ) from error
    return folder


def data_path(environ: Mapping[str, str]) -> Path:
    """Return the folder of sessions and memory, which may not exist."""
    if variable := data_variable(environ):
        return _absolute(environ[variable], environ)
    if _PLATFORM == "linux":
        return _xdg(environ, "XDG_DATA_HOME", ".local/share")
    import platformdirs

    return platformdirs.user_data_path(_APP, appauthor=False)


def data_variable(environ: Mapping[str, str]) -> str:
    """Return the variable that chooses the data folder; empty if none does."""
    return next(filter(environ.get, _DATA_VARIABLES), "")


def _xdg(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    chosen = environ.get(variable, "")
    # The XDG specification calls relative paths invalid; following one would read settings from the workspace.
    base = Path(chosen) if chosen.startswith("/") else _home(environ) / below_home
    return base / _APP


def _absolute(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        return _home(environ) / text[2:]
    return Path(text).absolute()


def _home(environ: Mapping[str, str]) -> Path:
    if (home := environ.get("HOME", "")).startswith("/"):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigError(
            "cannot determine the home folder", "set HOME, or AGENT_CONFIG_DIR and AGENT_SANDBOX"
        ) from error
