"""`agent hooks`: list the hooks that apply, and test their decisions."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import current_folder, os_environ
from agent.hooks.claude_calls import own_call
from agent.hooks.command_config import TOOL_EVENTS
from agent.hooks.hook import GuardedCall
from agent.hooks.listing import HookRow, TrialResult, list_hooks, try_hooks, unused_hooks
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages.columns import Column, render_table
from cli.pages.pages import print_json, print_table, stdout_colors, terminal_width
from cli.run.progress import print_stderr
from cli.screen.colors import Tone
from cli.tool_arguments import parse_arguments
from tooling.contract.json_codec import did_you_mean, encode
from tooling.tool_catalog import load_catalog

app = typer.Typer(no_args_is_help=True)
NO_HOOKS = "(no hooks)"
NO_HOOKS_FOR_EVENT = "no hook of yours is for {event}"
_TONES: dict[str, Tone] = {
    "pass": "quiet",
    "no match": "quiet",
    "allow": "good",
    "ask": "warn",
    "deny": "bad",
    "failed": "bad",
}

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FolderOption = Annotated[
    Path | None, typer.Option("-C", "--cd", metavar="DIR", help="The working folder; the current one if left out.")
]


@app.command("list")
def list_command(*, cwd: FolderOption = None, as_json: JsonOption = False) -> None:
    """List hooks. Yours, those of packages, and those of the folder, which must be trusted."""
    environ = os_environ()
    rows = list_hooks(load_settings(environ=environ).settings, environ, _folder(cwd))
    for problem in unused_hooks(environ):
        print_stderr(f"warning: {problem}")
    if as_json:
        print_json(encode(rows))
    else:
        print_table(_table(rows, terminal_width()) if rows else [NO_HOOKS])


@app.command("test")
def test_command(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="An event such as PreToolUse.")],
    tool: Annotated[
        str, typer.Argument(metavar="[TOOL]", help="The tool of the call, such as run_command or Bash; or a prompt.")
    ] = "",
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="The arguments of the call.")
    ] = None,
    *,
    text: Annotated[str, typer.Option("--text", metavar="TEXT", help="The prompt, answer or output.")] = "",
    cwd: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what hooks decide about an event. They are run as if it happened; the tool is not run."""
    environ, folder = os_environ(), _folder(cwd)
    words = arguments or []
    if event not in TOOL_EVENTS:
        text, tool, words = text or " ".join((tool.removeprefix("prompt="), *words)).strip(), "", []
    name, names = own_call(tool or "run_command")
    call = GuardedCall(tool=name, arguments=_arguments(name, names, words), cwd=folder, call_id="test")
    settings = load_settings(environ=environ).settings
    results = asyncio.run(try_hooks(settings, environ, folder, event, call, text))
    if as_json:
        print_json(encode(results))
    elif results:
        print_table(_result_table(results, terminal_width()))
    else:
        typer.echo(NO_HOOKS_FOR_EVENT.format(event=event), err=True)
    if any(result.decision in ("deny", "failed") for result in results):
        raise typer.Exit(exit_codes.FAILED)


def _folder(cwd: Path | None) -> Path:
    return (cwd or current_folder()).expanduser().resolve()


def _arguments(tool: str, names: Mapping[str, str], words: Sequence[str]) -> dict[str, object]:
    """Parse the arguments of a call; `names` maps the argument names of scripts to those of the tool."""
    specs = {spec.name: spec for spec in load_catalog().specs}
    if tool not in specs:
        raise UsageError(f"there is no tool {tool!r}{did_you_mean(tool, list(specs))}")
    own = [f"{names.get(key, key)}{equals}{value}" for key, equals, value in (word.partition("=") for word in words)]
    return parse_arguments(own, specs[tool])


def _table(rows: Sequence[HookRow], width: int | None) -> list[str]:
    states: list[Tone] = ["good" if row.state == "active" else "warn" for row in rows]
    columns = [
        Column(header="EVENT", cells=[row.event for row in rows]),
        Column(header="TOOLS", cells=[row.matcher or "*" for row in rows], min_width=8, drop_priority=2),
        Column(header="HOOK", cells=[row.name for row in rows], min_width=16),
        Column(header="FROM", cells=[row.source for row in rows], min_width=10, tone="quiet", drop_priority=3),
        Column(header="STATE", cells=[row.state for row in rows], tones=states),
    ]
    return render_table(columns, width, stdout_colors())


def _result_table(results: Sequence[TrialResult], width: int | None) -> list[str]:
    columns = [
        Column(header="HOOK", cells=[result.name for result in results], min_width=16),
        Column(
            header="DECISION",
            cells=[result.decision for result in results],
            tones=[_TONES.get(result.decision, "plain") for result in results],
        ),
        Column(header="REASON", cells=[result.reason or result.context for result in results], min_width=16),
    ]
    return render_table(columns, width, stdout_colors())
