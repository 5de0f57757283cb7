"""Folders of settings and data; the only module that reads the process environment."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from agent.vocabulary.errors import ConfigError, InputError

_APP = "agent"
# The variables that choose the data folder, the preferred one first.
_DATA_VARIABLES = ("AGENT_SANDBOX", "AGENT_SANDBOX_ROOT")
# They locate all other configuration, so they cannot be set there.
FOLDER_VARIABLES = ("AGENT_CONFIG_DIR", *_DATA_VARIABLES)
# The files of a folder that may define hooks; they are used only if the user has trusted them.
PROJECT_HOOK_FILES = (".windlass/hooks.json", ".claude/settings.json", ".claude/settings.local.json")
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


def temp_folder(environ: Mapping[str, str]) -> str:
    """Return the folder for temporary files, as `tempfile` finds it, which takes longer to import."""
    chosen = [folder for name in ("TMPDIR", "TEMP", "TMP") if (folder := environ.get(name))]
    usable = (folder for folder in (*chosen, "/tmp", "/var/tmp") if os.access(folder, os.W_OK | os.X_OK))
    return next(usable, ".")


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


def hooks_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's hook commands, which may not exist."""
    return config_dir(environ) / "hooks.json"


def callback_spool(data: Path) -> Path:
    """Return the folder of undelivered callbacks, which may not exist."""
    return data / "callbacks"


def has_spooled_callbacks(data: Path) -> bool:
    """Return whether callbacks of earlier runs are undelivered."""
    try:
        with os.scandir(callback_spool(data)) as entries:
            return any(entry.name.endswith(".json") for entry in entries)
    except OSError:
        return False


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
    check_data_folder(folder)
    return folder


def check_data_folder(folder: Path) -> None:
    """Raise ConfigError for a data folder in which another user could plant sessions, memory or settings."""
    try:
        found = folder.stat()
    except OSError:
        return
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"the data folder {folder} belongs to another user", "set AGENT_SANDBOX to a folder of your own"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"other users can write to the data folder {folder}", f"chmod go-w '{folder}'")


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


def own_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders of data and settings, which no tool and no command may touch; they may not exist."""
    return (data_path(environ), config_dir(environ))


def user_homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the home folder that the environment names and the one of the user's account, resolved."""
    import pwd

    named = Path(environ.get("HOME") or "/")
    try:
        account = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        account = named
    found = (path.resolve() for path in (named, account) if path.is_absolute())
    return tuple(dict.fromkeys(path for path in found if len(path.parts) > 1))


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
