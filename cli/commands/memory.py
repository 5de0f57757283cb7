"""`agent memory`: show, extend, clear and compact the memory shared by runs."""

import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer

from agent.config.load import LoadedSettings, load_settings
from agent.config.user_dirs import data_dir, os_environ
from agent.memory.compaction import KB, CompactionModel, CompactionResult, compact
from agent.memory.entries import MemoryLine, Tag, non_blank, parse_lines
from agent.memory.memory_file import MemoryFile, find_lines
from agent.memory.privacy import find_secret
from agent.model.port import ModelClient, ModelReply, ModelRequest
from agent.model.router import ModelRouter
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import InputError, UsageError
from cli.pages.pages import NO_CONFIRMATION, print_json, print_notice
from cli.screen.sanitize import sanitize
from tooling.safety.secrets.redact import Redactor
from tooling.tools.memory import EMPTY_MEMORY

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TagOption = Annotated[
    Tag | None, typer.Option("--tag", help="Category; a plain note if omitted.", case_sensitive=False)
]
ALREADY_REMEMBERED = "already remembered"
SHORT_ENOUGH = "already short enough"


@app.command("show")
def show(*, as_json: JsonOption = False) -> None:
    """Show the memory."""
    memory = _memory()
    text = memory.read()
    if as_json:
        lines = [_fields(line) for line in non_blank(parse_lines(sanitize(text)))]
        print_json({"path": str(memory.path), "bytes": memory.size(), "lines": lines})
        return
    # The file must not control the terminal; a pipe gets the text unchanged.
    output = sanitize(text) if sys.stdout.isatty() else text
    sys.stdout.buffer.write((output.rstrip("\n") or EMPTY_MEMORY).encode("utf-8", "surrogateescape") + b"\n")


@app.command("add")
def add(
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to remember; - reads it from stdin.")],
    *,
    tag: TagOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a line to the memory."""
    memory, loaded = _memory(), _load()
    words = sys.stdin.read() if text == ["-"] else " ".join(text)
    if problem := find_secret(words, Redactor(loaded.secrets)):
        raise InputError(f"not remembered: {problem}", "the memory is sent to the model with every run")
    line = memory.append(words, tag=tag)
    if as_json:
        print_json({"added": line is not None, "line": line})
        return
    typer.echo(line or ALREADY_REMEMBERED, err=True)
    if memory.size() > loaded.settings.memory_max_kb * KB:
        hint = "`agent memory compact` shortens it"
        typer.echo(f"the memory has grown to {_size(memory.size())}; {hint}", err=True)


@app.command("forget")
def forget(
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Text to look for, ignoring case.")],
    *,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete lines that contain a text. Asks first if there are several."""
    memory, words = _memory(), " ".join(text)
    matches = find_lines(memory.read(), words) if words.strip() else []
    if not matches:
        raise InputError(f"no remembered line contains {words!r}", "`agent memory show` shows all of them")
    if len(matches) > 1 and not yes:
        print_notice(sanitize("\n".join(matches)))
        if not _confirm(f"forget these {_line_count(len(matches))}?"):
            raise typer.Exit(exit_codes.FAILED)
    forgotten = memory.forget(words)
    if as_json:
        print_json({"forgotten": [line.strip() for line in forgotten]})
    else:
        print_notice(sanitize("\n".join(f"forgotten: {line.strip()}" for line in forgotten)))


@app.command("clear")
def clear(
    *,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the memory. Backups from earlier compactions are deleted too."""
    memory = _memory()
    count = sum(1 for _ in non_blank(parse_lines(memory.read())))
    if not yes and not _confirm(f"forget {_line_count(count)} in {memory.path} and all backups?"):
        raise typer.Exit(exit_codes.FAILED)
    count = memory.clear(has_backup=False)
    if as_json:
        print_json({"cleared": count})
    else:
        typer.echo(f"forgotten: {_line_count(count)}", err=True)


@app.command("compact")
def compact_(
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Model to use, if not the configured one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Shorten the memory, with a model or by priority. A backup is saved."""
    memory, loaded = _memory(), _load({"model": model} if model else {})
    result = asyncio.run(_run_compaction(memory, loaded))
    backup = None if result.by == "nobody" else str(memory.backups[-1])
    if result.problem:
        typer.echo(f"warning: shortened without the model: {result.problem}", err=True)
    if as_json:
        print_json({"before": result.before, "after": result.after, "by": result.by, "backup": backup})
    elif backup:
        typer.echo(f"{_size(result.before)} → {_size(result.after)}, by {result.by}; backup: {backup}", err=True)
    else:
        is_too_long = result.before > loaded.settings.memory_compact_target_kb * KB
        reason = "the rest is your own lines, which are never removed" if is_too_long else SHORT_ENOUGH
        typer.echo(f"{_size(result.before)}: {reason}", err=True)


async def _run_compaction(memory: MemoryFile, loaded: LoadedSettings) -> CompactionResult:
    settings, redactor = loaded.settings, Redactor(loaded.secrets)
    target = settings.memory_compact_target_kb
    if not settings.model:
        return await compact(memory, target, redactor=redactor)
    client = ModelRouter(settings, redact=redactor.redact)
    shortener = CompactionModel(
        ask=partial(_reply, client), model=settings.model, max_output_tokens=settings.max_output_tokens
    )
    try:
        return await compact(memory, target, redactor=redactor, shortener=shortener)
    finally:
        await client.close()


async def _reply(client: ModelClient, request: ModelRequest) -> ModelReply:
    items = [item async for item in client.stream(request) if isinstance(item, ModelReply)]
    return items[-1]


def _memory() -> MemoryFile:
    return MemoryFile(data_dir(os_environ()))


def _load(flags: Mapping[str, object] | None = None) -> LoadedSettings:
    return load_settings(environ=os_environ(), flags=flags)


def _confirm(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(NO_CONFIRMATION, "--yes deletes without asking")
    return typer.confirm(question, err=True)


def _fields(line: MemoryLine) -> dict[str, object]:
    return {"date": line.stamp if line.is_dated else None, "tag": line.tag, "text": line.text}


def _line_count(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _size(count: int) -> str:
    return f"{count / KB:.1f} kB"
