"""`agent sessions`: list, inspect, undo and maintain sessions."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from cli.pages.pages import (
    print_json,
    print_lines,
    print_notice,
    print_page,
    print_styled,
    stdout_colors,
    terminal_width,
)
from tooling.contract.json_codec import encode

app = typer.Typer(help="List, inspect, undo and maintain sessions.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Session id, or a prefix of it.")]
SessionsArgument = Annotated[list[str], typer.Argument(metavar="SESSION...", help="Session ids, or prefixes of them.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number to show.")]
AllOption = Annotated[bool, typer.Option("--all", "-a", help="Show all.")]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only changes of this run.")]
StepOption = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="Only changes of this step, of --run or the newest run that has it."),
]
_DEFAULT_LIMIT = 30
NO_MATCHES = "no matches"


@app.command("list")
def list_sessions(
    *, limit: LimitOption = _DEFAULT_LIMIT, every: AllOption = False, as_json: JsonOption = False
) -> None:
    """List the sessions, newest first."""
    from agent.sessions.views.listing import newest_sessions, session_rows
    from cli.pages.session_pages import sessions_table

    store = _store()
    sessions = newest_sessions(store)
    rows = list(session_rows(store, sessions, None if every else limit))
    if as_json:
        print_json(encode(rows))
    else:
        print_lines(sessions_table(rows, terminal_width()) if rows else ["(no sessions)"])
    if hidden := len(sessions) - len(rows):
        typer.echo(not_shown(hidden), err=True)


def not_shown(count: int) -> str:
    return f"{count} older {'session' if count == 1 else 'sessions'} not shown; --all shows them"


@app.command("show")
def show_session(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """Show a session with its requests and answers."""
    from agent.sessions.views.listing import session_status
    from agent.sessions.views.session_summary import read_session
    from agent.sessions.views.titles import session_title
    from cli.pages.session_pages import render_session

    folder = _store().find(session)
    record = read_session(folder)
    title, status = session_title(folder, record), session_status(folder, record.last_subtype)
    if as_json:
        print_json({"id": record.id, "title": title, "status": status, **_object(encode(record))})
    else:
        print_page(render_session(record, title=title, status=status))


@app.command("rename")
def rename_session(
    session: SessionArgument, title: Annotated[str, typer.Argument(help="New title; '' restores the first request.")]
) -> None:
    """Set the title of a session; its id does not change."""
    from agent.sessions.views.titles import rename

    rename(_store().find(session), title)


@app.command("rm")
def remove_sessions(sessions: SessionsArgument, *, yes: YesOption = False) -> None:
    """Remove sessions and all their data. A run in progress is stopped first."""
    from cli.pages.session_upkeep import remove_all

    store = _store()
    raise typer.Exit(remove_all(store, [store.find(name) for name in sessions], is_agreed=yes))


@app.command("fork")
def fork_session(
    session: SessionArgument,
    new_id: Annotated[str | None, typer.Argument(metavar="NEW_ID", help="Id of the copy.")] = None,
) -> None:
    """Copy a session under a new id and print the id. The copy is independent of the original."""
    from agent.sessions.upkeep.fork import fork

    store = _store()
    print_lines([fork(store, store.find(session), new_id).id])


@app.command("export")
def export_session(
    session: SessionArgument,
    *,
    export_format: Annotated[
        Literal["markdown", "json"] | None,
        typer.Option("--format", help="Default: json if FILE ends in .json, else markdown."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Export a session as Markdown or JSON."""
    from cli.pages.session_upkeep import export

    export(_store().find(session), export_format=export_format, output=output)


@app.command("search")
def search_sessions(
    words: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Text to find, ignoring case.")],
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also search messages, commands and changes.")] = False,
    limit: LimitOption = 50,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find text in titles, requests and answers. Exits with 1 if there are no matches."""
    from agent.sessions.views.session_search import search
    from cli.pages.session_pages import highlight_hits, hits_table

    text = " ".join(words)
    hits = search(_store(), text, is_deep=deep)
    shown = list(islice(hits, None if every else limit))
    if as_json:
        print_json(encode(shown))
    elif (width := terminal_width()) is None:
        print_lines(hits_table(shown) if shown else [])
    elif shown:
        print_styled("\n".join([*highlight_hits(shown, text, width=width, paint=stdout_colors()), ""]))
    else:
        print_notice(
            NO_MATCHES if deep else f"{NO_MATCHES} in titles, requests and answers; --deep searches everything"
        )
    if next(hits, None) is not None:
        typer.echo("there are more matches; --all shows them", err=True)
    raise typer.Exit(exit_codes.OK if shown else exit_codes.FAILED)


@app.command("gc")
def collect_garbage(
    *,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Minimum time since last use: 12h, 30d, 4w.")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", min=0, help="Always keep this many of the newest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them instead of listing them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old sessions (by default after 30 days) and leftovers of crashes. Without --yes, only list them."""
    from cli.durations import parse_days
    from cli.pages.session_upkeep import run_gc

    min_age = "30d" if older_than is None and keep is None else older_than
    age_s = None if min_age is None else parse_days(min_age, "--older-than") * 86400
    run_gc(_store(), older_than_s=age_s, keep=keep or 0, is_agreed=yes, as_json=as_json)


@app.command("fsck")
def check_sessions(
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="Check only this session.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report problems without repairing them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find and repair damage from crashes, full disks and manual edits. Exits with 1 if there was any."""
    from cli.pages.session_upkeep import check_all

    folders = [_store().find(session)] if session else _store().all()
    raise typer.Exit(check_all(folders, repair=not dry_run, as_json=as_json, is_named=session is not None))


@app.command("diff")
def diff(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    by_step: Annotated[bool, typer.Option("--by-step", help="Show every change instead of the net diff.")] = False,
) -> None:
    """Show the file changes of a session as unified diffs."""
    from cli.pages.session_changes import print_diff

    print_diff(_store().find(session), run=run, step=step, by_step=by_step)


@app.command("undo")
def undo(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    yes: YesOption = False,
    force: Annotated[bool, typer.Option("--force", help="Also restore files that were changed since.")] = False,
) -> None:
    """Restore files to their state before a session, run or step. An undo can itself be undone."""
    from cli.pages.session_changes import undo_changes

    raise typer.Exit(undo_changes(_store().find(session), run=run, step=step, is_agreed=yes, is_forced=force))


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _object(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return data
