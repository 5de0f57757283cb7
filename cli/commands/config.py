"""`agent config`: show settings with their origins, change one, print the path of the file."""

import json
import sys
from typing import Annotated

import typer

from agent.config.edit import set_value
from agent.config.load import LoadedSettings, load_settings
from agent.config.show import SettingRow, data_folder_row, find_row, setting_rows
from agent.config.user_dirs import config_file, os_environ
from cli.pages.columns import Column, render_table
from cli.pages.pages import print_table, stdout_colors, terminal_width

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
    print_table(_table(setting_rows(loaded, os_environ()), terminal_width()))
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


def _table(rows: tuple[SettingRow, ...], width: int | None) -> list[str]:
    """Return the list of settings; on a terminal the user's settings are highlighted."""
    is_default = [row.origin.layer == "default" for row in rows]
    columns = [
        Column(header="SETTING", cells=[row.name for row in rows], tone="accent"),
        Column(
            header="VALUE",
            cells=[row.text or "-" for row in rows],
            min_width=12,
            tones=["quiet" if default else "plain" for default in is_default],
        ),
        Column(
            header="FROM",
            cells=[str(row.origin) for row in rows],
            min_width=7,
            tones=["quiet" if default else "good" for default in is_default],
            drop_priority=1,
        ),
    ]
    return render_table(columns, width, stdout_colors())


def _warn(loaded: LoadedSettings) -> None:
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
