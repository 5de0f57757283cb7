"""`agent workspaces`: list, archive and remove the workspaces of executors."""

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.config.load import load_settings
from agent.config.service_settings import ServiceSettings, load_service_settings
from agent.config.user_dirs import os_environ
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages.columns import Column, render_table
from cli.pages.pages import (
    NO_CONFIRMATION,
    format_age,
    format_size,
    print_json,
    print_lines,
    print_notice,
    print_table,
    stdout_colors,
    terminal_width,
)
from tooling.contract.json_codec import encode

if TYPE_CHECKING:
    from agent.service.workspaces.cleanup import CleanupStep
    from agent.service.workspaces.layout import Workspace
    from agent.service.workspaces.open_workspaces import Workspaces

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Also remove persistent ones.")]
RemoveOption = Annotated[bool, typer.Option("--rm", help="Remove each one after it was archived.")]
ArchivesOption = Annotated[bool, typer.Option("--archives", help="List archives instead.")]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="USER/SESSION...", help="Workspaces, as `list` shows them.")
]
WRONG_NAME = "{name!r} does not name a workspace"
NAME_HINT = "write it as USER/SESSION; `agent workspaces list` shows them"
CONFIRM = "remove {count} workspaces with all their files?"


@app.command("list")
def list_workspaces(*, archives: ArchivesOption = False, as_json: JsonOption = False) -> None:
    """List workspaces with their sizes, or their archives."""
    settings, workspaces = _open()
    if archives:
        _list_archives(workspaces, as_json=as_json)
        return
    rows = [_row(one, settings) for one in workspaces.store.all()]
    if as_json:
        print_json(rows)
        return
    columns = [
        Column(header="WORKSPACE", cells=[f"{row['user_id']}/{row['session_id']}" for row in rows], tone="accent"),
        Column(header="MODE", cells=[str(row["container_mode"]) for row in rows]),
        Column(header="STATUS", cells=["running" if row["is_running"] else "idle" for row in rows]),
        Column(header="FILES", cells=[str(row["files"]) for row in rows]),
        Column(header="SIZE", cells=[format_size(int(str(row["size_bytes"]))) for row in rows]),
        Column(header="USED", cells=[format_age(str(row["last_used"]), datetime.now(UTC)) for row in rows]),
    ]
    print_table(render_table(columns, terminal_width(), stdout_colors()) if rows else ["(no workspaces)"])


def _list_archives(workspaces: "Workspaces", *, as_json: bool) -> None:
    found = asyncio.run(workspaces.archives.list())
    if as_json:
        print_json(encode(found))
        return
    columns = [
        Column(header="ARCHIVE", cells=[one.location for one in found], tone="accent"),
        Column(header="SIZE", cells=[format_size(one.size_bytes) for one in found]),
    ]
    print_table(render_table(columns, terminal_width(), stdout_colors()) if found else ["(no archives)"])


@app.command("archive")
def archive_workspaces(names: NamesArgument, *, remove: RemoveOption = False, dry_run: DryRunOption = False) -> None:
    """Archive workspaces as .tar.gz, in a folder or a bucket."""
    _, workspaces = _open()
    found = [_find(workspaces, name) for name in names]
    if dry_run:
        print_lines(f"would archive {one.path}" for one in found)
        return
    for one in found:
        archive = asyncio.run(workspaces.cleaner.archive(one))
        print_lines([archive.location])
        if remove:
            asyncio.run(workspaces.cleaner.remove(one, is_forced=True))


@app.command("rm")
def remove_workspaces(
    names: NamesArgument, *, force: ForceOption = False, dry_run: DryRunOption = False, yes: YesOption = False
) -> None:
    """Remove workspaces with all their files; those in use are refused."""
    _, workspaces = _open()
    found = [_find(workspaces, name) for name in names]
    if dry_run:
        print_lines(f"would remove {one.path}" for one in found)
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(NO_CONFIRMATION, "--yes removes without asking")
        typer.confirm(CONFIRM.format(count=len(found)), abort=True, err=True)
    for one in found:
        asyncio.run(workspaces.cleaner.remove(one, is_forced=force))
        print_notice(f"removed {one.path}")


@app.command("gc")
def collect_garbage(*, dry_run: DryRunOption = False) -> None:
    """Remove what killed processes left, and old workspaces."""
    _, workspaces = _open()
    steps, containers = asyncio.run(_collect(workspaces, is_dry_run=dry_run))
    would = "would " if dry_run else ""
    print_lines(f"{would}remove container {name}" for name in containers)
    print_lines(f"{would}{step.action} {step.target}{f': {step.problem}' if step.problem else ''}" for step in steps)
    if any(step.problem for step in steps):
        raise typer.Exit(exit_codes.FAILED)


async def _collect(workspaces: "Workspaces", *, is_dry_run: bool) -> "tuple[list[CleanupStep], list[str]]":
    from agent.service.containers.open_pool import remove_stale_containers

    # Containers first: a workspace is free once its container is removed.
    containers = await remove_stale_containers(workspaces.store, os_environ(), is_dry_run=is_dry_run)
    cleaner, policy = workspaces.cleaner, workspaces.policy
    return await (cleaner.plan(policy) if is_dry_run else cleaner.run(policy)), containers


def _open() -> "tuple[ServiceSettings, Workspaces]":
    from agent.service.workspaces.open_workspaces import open_workspaces

    environ = os_environ()
    settings = load_service_settings(load_settings(environ=environ), environ).settings
    return settings, open_workspaces(settings, environ)


def _find(workspaces: "Workspaces", name: str) -> "Workspace":
    user, slash, session = name.partition("/")
    if not slash:
        raise UsageError(WRONG_NAME.format(name=name), NAME_HINT)
    return workspaces.store.find(user, session)


def _row(workspace: "Workspace", settings: ServiceSettings) -> dict[str, object]:
    from agent.service.workspaces.listing import workspace_row

    found = encode(workspace_row(workspace, ignores_dot_files=settings.workspace_ignore_dot_files))
    assert isinstance(found, dict)
    return found
