"""`agent config`: show settings with their origins, change one, print the path of the file."""

import json
import sys
from typing import Annotated

import typer

from agent.config.edit import set_value
from agent.config.load import LoadedSettings, load_settings
from agent.config.show import SettingRow, data_folder_row, find_row, setting_rows
from agent.config.user_dirs import config_file, os_environ

app = typer.Typer(no_args_is_help=True)

ProfileOption = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Apply this profile of the file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("show")
def show(profile: ProfileOption = None, as_json: JsonOption = False) -> None:  # noqa: FBT002
    """List all settings with their values and origins. Keys are masked."""
    loaded = _load(profile)
    if as_json:
        settings = {row.name: _fields(row) for row in setting_rows(loaded, os_environ())}
        path, data = str(config_file(os_environ())), _fields(data_folder_row(os_environ()))
        document = {"path": path, "data": data, "settings": settings, "warnings": loaded.warnings}
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo("\n".join(_align(setting_rows(loaded, os_environ()))))
    _warn(loaded)


@app.command("get")
def get(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Name of a setting, such as model or keys.openai.")],
    profile: ProfileOption = None,
    as_json: JsonOption = False,  # noqa: FBT002
) -> None:
    """Print one setting. The value goes to stdout, its origin to stderr."""
    loaded = _load(profile)
    row = find_row(loaded, key, os_environ())
    if as_json:
        typer.echo(json.dumps({"name": row.name, **_fields(row)}))
        return
    typer.echo(row.text)
    typer.echo(f"from: {row.origin}", err=True)
    _warn(loaded)


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Name of a setting, such as model or keys.openai.")],
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="New value; - reads it from stdin, none removes the setting.")
    ],
) -> None:
    """Set one setting in the file. Comments and other lines are preserved."""
    path = config_file(os_environ())
    set_value(path, key, sys.stdin.read().strip() if value == "-" else value)
    typer.echo(f"{path}: {key} changed", err=True)


@app.command("path")
def path() -> None:
    """Print the path of the settings file, even if it does not exist."""
    typer.echo(str(config_file(os_environ())))


def _load(profile: str | None) -> LoadedSettings:
    return load_settings(environ=os_environ(), profile=profile)


def _fields(row: SettingRow) -> dict[str, object]:
    return {"value": row.value, "layer": row.origin.layer, "where": row.origin.where}


def _align(rows: tuple[SettingRow, ...]) -> list[str]:
    name_width = max(len(row.name) for row in rows)
    value_width = min(40, max(len(row.text) for row in rows))
    return [f"{row.name:{name_width}}  {row.text or '-':{value_width}}  {row.origin}" for row in rows]


def _warn(loaded: LoadedSettings) -> None:
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
