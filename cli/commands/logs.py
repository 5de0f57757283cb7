"""`agent logs`: show the log of runs."""

import json
import time
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.telemetry.log_file import LEVELS, log_path, parse_lines, read_log
from agent.vocabulary.errors import InputError
from cli.pages.pages import stdout_colors
from cli.run.stdout import sanitize_for_terminal
from cli.screen.colors import Tone
from tooling.contract.json_codec import JsonObject
from tooling.files.open_regular import open_regular

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
_DEFAULT_LIMIT = 100
_POLL_S = 0.5
_TONES: dict[str, Tone] = {"debug": "quiet", "info": "plain", "warning": "warn", "error": "bad"}


def command(
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only lines of this session.")
    ] = None,
    level: Annotated[
        Level, typer.Option("--level", metavar="LEVEL", help="Lowest level to show: debug, info, warning or error.")
    ] = "debug",
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number of lines, the newest ones.")
    ] = _DEFAULT_LIMIT,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more lines until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the lines as they are, one JSON object each.")] = False,
) -> None:
    """Show the log of your runs, oldest first. The setting log_level chooses what is written."""
    data = data_dir(os_environ())
    path = log_path(data)
    wanted = _session_id(SessionStore(data), session)

    def is_shown(line: JsonObject) -> bool:
        rank = LEVELS.index(line["level"]) if line.get("level") in LEVELS else 0
        return rank >= LEVELS.index(level) and wanted in (None, line.get("session_id"))

    position = path.stat().st_size if path.exists() else 0
    lines = list(filter(is_shown, read_log(path)))[-limit:]
    for line in lines:
        print_line(line, as_json=as_json)
    if not (lines or as_json or follow):
        print("(nothing in the log)")
    if follow:
        try:
            for line in filter(is_shown, _new_lines(position)):
                print_line(line, as_json=as_json)
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def _session_id(store: SessionStore, given: str | None) -> str | None:
    """Return the full id of a session; a removed one may still be in the log under its full id."""
    if given is None:
        return None
    try:
        return store.find(given).id
    except InputError:
        return given


def _new_lines(position: int) -> Iterator[JsonObject]:
    """Yield lines added from now on, also after the file was rotated."""
    path = log_path(data_dir(os_environ()))
    while True:
        size = path.stat().st_size if path.exists() else 0
        if size < position:
            position = 0
        if size > position:
            with open_regular(path) as file:
                file.seek(position)
                data = file.read()
            complete = data[: data.rfind(b"\n") + 1]
            position += len(complete)
            yield from parse_lines(iter(complete.splitlines()))
        time.sleep(_POLL_S)


def print_line(line: JsonObject, *, as_json: bool) -> None:
    """Print one line of the log."""
    if as_json:
        print(json.dumps(line, ensure_ascii=False), flush=True)
        return
    level = str(line.get("level", ""))
    where = " ".join(str(line[name]) for name in ("session_id", "step_id") if line.get(name))
    head = f"{line.get('ts', '')} {level.upper():7} {where} {line.get('event', '')}"
    message = str(line.get("message") or "")
    text = sanitize_for_terminal(f"{head}: {message}" if message else head)
    print(stdout_colors()(_TONES.get(level, "plain"), text), flush=True)
