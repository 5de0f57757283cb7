"""What pages of past work share: safe text, times, the width of the terminal, and a reader that may leave."""

import shutil
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agent.config.places import os_environ
from cli.screen.sanitize import readable, readable_json

if TYPE_CHECKING:
    from cli.screen.colors import Paint

_NARROWEST = 40
_AGES = ((60, "m"), (24, "h"), (7, "d"), (52, "w"))


def show(lines: Iterable[str]) -> None:
    """Write lines to stdout."""
    show_text("".join(f"{line}\n" for line in lines))


def show_text(text: str) -> None:
    """Write text to stdout: a terminal gets what can be read of it, a program all; a reader that left is no error."""
    show_painted(readable(text) if sys.stdout.isatty() else text)


def show_painted(text: str) -> None:
    """Write text with our own colours to stdout; what strangers wrote in it was made readable before."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError as left:
        raise typer.Exit(0) from left


def show_page(lines: Iterable[str]) -> None:
    """Write lines that a person reads to stdout; on a terminal they are broken between words."""
    text = "".join(f"{line}\n" for line in lines)
    show_text(f"{broken(readable(text))}\n" if sys.stdout.isatty() else text)


def show_json(data: object) -> None:
    """Write one JSON document to stdout."""
    show([readable_json(data, indent=2)])


def tell(text: str) -> None:
    """Write to stderr what a person should know, readable in a narrow window."""
    typer.echo(broken(text) if sys.stderr.isatty() else text, err=True)


def broken(text: str) -> str:
    """Return a text that fits the terminal, broken between words."""
    from cli.screen.colors import fitted

    return "\n".join(fitted(text, shutil.get_terminal_size().columns))


def stdout_paint() -> "Paint":
    """Return the colours for what a person reads on stdout."""
    from cli.run.progress import wants_colour
    from cli.screen.colors import Paint, ground

    environ = os_environ()
    return Paint(has_colour=wants_colour(environ, sys.stdout), theme=ground("auto", environ))


def width() -> int | None:
    """Return how wide a line may be; None where no terminal cuts lines."""
    return max(_NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def one_line(text: str, most: int) -> str:
    """Return a text as one short line."""
    words = " ".join(readable(text).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def indented(text: str, by: str = "  ") -> list[str]:
    """Return a text as lines that stand below something."""
    return [f"{by}{line}".rstrip() for line in readable(text).rstrip().splitlines()]


def age(timestamp: str, now: datetime | None = None) -> str:
    """Return how long ago something was: now, 5m, 3h, 2d, 6w, 1y."""
    try:
        then = datetime.fromisoformat(timestamp)
        amount = ((now or datetime.now(UTC)) - then).total_seconds() / 60
    except (ValueError, TypeError):
        return ""
    if amount < 1:
        return "now"
    for limit, unit in _AGES:
        if amount < limit:
            return f"{int(amount)}{unit}"
        amount /= limit
    return f"{int(amount)}y"


def moment(timestamp: str) -> str:
    """Return a time of an event in this machine's time, to the minute."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return timestamp


def folder(path: str) -> str:
    """Return a folder as short as a person writes it."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def size(number: int) -> str:
    """Return a number of bytes: 950 B, 1.2 kB, 34 MB."""
    value = float(number)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
