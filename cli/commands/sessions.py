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
    print_table,
    stdout_colors,
    terminal_width,
)
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session, or a prefix of it.")]
SessionsArgument = Annotated[
    list[str], typer.Argument(metavar="SESSION...", help="Ids of sessions, or prefixes of them.")
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number to list; 30, or all with --json."),
]
AllOption = Annotated[bool, typer.Option("--all", "-a", help="List all.")]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only changes of this run.")]
StepOption = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="Only changes of this step, in --run or the latest run that has it."),
]
_DEFAULT_LIMIT = 30
NO_MATCHES = "no matches"


@app.command("list")
def list_sessions(*, limit: LimitOption = None, show_all: AllOption = False, as_json: JsonOption = False) -> None:
    """List sessions, newest first."""
    from agent.sessions.views.listing import newest_sessions, session_rows
    from cli.pages.session_pages import sessions_table

    store = _store()
    sessions = newest_sessions(store)
    rows = list(session_rows(store, sessions, max_rows(limit, show_all=show_all, as_json=as_json)))
    if as_json:
        print_json(encode(rows))
    else:
        print_table(sessions_table(rows, terminal_width(), stdout_colors()) if rows else ["(no sessions)"])
    if hidden := len(sessions) - len(rows):
        typer.echo(not_shown(hidden), err=True)


def max_rows(limit: int | None, *, show_all: bool, as_json: bool) -> int | None:
    """Return the number of rows to list, None for all: output for programs is limited only on request."""
    return None if show_all or (as_json and limit is None) else limit or _DEFAULT_LIMIT


def not_shown(count: int) -> str:
    return f"{count} older {'session' if count == 1 else 'sessions'} not shown; --all shows them"


@app.command("show")
def show_session(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """Show the tasks and answers of a session."""
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
    session: SessionArgument,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="New title; '' restores the default, the first task.")],
) -> None:
    """Change the title of a session, not its id."""
    from agent.sessions.views.titles import rename

    rename(_store().find(session), title)


@app.command("rm")
def remove_sessions(sessions: SessionsArgument, *, yes: YesOption = False) -> None:
    """Delete sessions. A run in progress is stopped first."""
    from cli.pages.session_upkeep import remove_all

    store = _store()
    raise typer.Exit(remove_all(store, [store.find(name) for name in sessions], is_confirmed=yes))


@app.command("fork")
def fork_session(
    session: SessionArgument,
    new_id: Annotated[str | None, typer.Argument(metavar="NEW_ID", help="Id of the copy.")] = None,
) -> None:
    """Copy a session and print the new id. The two are independent."""
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
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
) -> None:
    """Export a session as Markdown or JSON."""
    from cli.pages.session_upkeep import export

    export(_store().find(session), export_format=export_format, output=output)


@app.command("search")
def search_sessions(
    words: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Text to look for, ignoring case.")],
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also search messages, tool calls and changes.")] = False,
    limit: LimitOption = None,
    show_all: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search tasks and answers. Exits with 1 if nothing is found."""
    from agent.sessions.views.session_search import search
    from cli.pages.session_pages import highlight_hits, hits_table

    text = " ".join(words)
    hits = search(_store(), text, is_deep=deep)
    shown = list(islice(hits, max_rows(limit, show_all=show_all, as_json=as_json)))
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
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Delete sessions unused for this long: 12h, 30d, 4w."),
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", min=0, metavar="N", help="Always keep the newest N.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete them instead of only listing them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete old sessions and leftover files. Without --yes they are only listed. The default age is 30 days."""
    from cli.durations import parse_days
    from cli.pages.session_upkeep import run_gc

    min_age = "30d" if older_than is None and keep is None else older_than
    age_s = None if min_age is None else parse_days(min_age, "--older-than") * 86400
    run_gc(_store(), older_than_s=age_s, keep=keep or 0, is_confirmed=yes, as_json=as_json)


@app.command("fsck")
def check_sessions(
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="Check only this session.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report problems without repairing them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find and repair damaged sessions. Exits with 1 if there were problems."""
    from cli.pages.session_upkeep import check_all

    folders = [_store().find(session)] if session else _store().all()
    raise typer.Exit(check_all(folders, repair=not dry_run, as_json=as_json, is_named=session is not None))


@app.command("diff")
def diff(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    by_step: Annotated[
        bool, typer.Option("--by-step", help="Show every change separately instead of the total.")
    ] = False,
) -> None:
    """Show the file changes of a session as diffs."""
    from cli.pages.session_changes import print_diff

    print_diff(_store().find(session), run=run, step=step, by_step=by_step)


@app.command("undo")
def undo(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    yes: YesOption = False,
    force: Annotated[bool, typer.Option("--force", help="Also undo files that were changed since.")] = False,
) -> None:
    """Undo the file changes of a session, run or step. An undo can itself be undone."""
    from cli.pages.session_changes import undo_changes

    raise typer.Exit(undo_changes(_store().find(session), run=run, step=step, is_confirmed=yes, is_forced=force))


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _object(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return data
