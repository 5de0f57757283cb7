"""`agent sessions`: what was asked in them, what they changed, and keeping them in order."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.config.places import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from cli.pages.pages import show, show_json, show_page, show_painted, stdout_paint, tell, width
from tooling.contract.json_codec import encode

app = typer.Typer(help="Sessions and what they changed.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session, or the beginning of it.")]
SessionsArgument = Annotated[list[str], typer.Argument(metavar="SESSION...", help="Ids, or the beginnings of them.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
AllOption = Annotated[bool, typer.Option("--all", "-a", help="All of them.")]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only what this run changed.")]
StepOption = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="Only this step, of --run or of the newest run that has it."),
]
_SHOWN = 30


@app.command("list")
def list_sessions(*, limit: LimitOption = _SHOWN, every: AllOption = False, as_json: JsonOption = False) -> None:
    """List the sessions, the newest first."""
    from agent.sessions.views.listing import newest_first, rows_of
    from cli.pages.session_pages import listing

    store = _store()
    sessions = newest_first(store)
    rows = list(rows_of(store, sessions, None if every else limit))
    if as_json:
        show_json(encode(rows))
    else:
        show(listing(rows, width()) if rows else ["(no sessions)"])
    if left := len(sessions) - len(rows):
        typer.echo(f"{left} older ones are not shown; --all shows them", err=True)


@app.command("show")
def show_session(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """Show a session: what was asked and answered in it."""
    from agent.sessions.views.listing import status_of
    from agent.sessions.views.session_summary import read_session
    from agent.sessions.views.titles import title_of
    from cli.pages.session_pages import page

    folder = _store().existing(session)
    record = read_session(folder)
    title, status = title_of(folder, record), status_of(folder, record.last_subtype)
    if as_json:
        show_json({"id": record.id, "title": title, "status": status, **_object(encode(record))})
    else:
        show_page(page(record, title=title, status=status))


@app.command("rename")
def rename_session(
    session: SessionArgument, title: Annotated[str, typer.Argument(help="What to call it; '' for its first request.")]
) -> None:
    """Give a session a title; its id stays."""
    from agent.sessions.views.titles import rename

    rename(_store().existing(session), title)


@app.command("rm")
def remove_sessions(sessions: SessionsArgument, *, yes: YesOption = False) -> None:
    """Remove sessions with all they hold. A run that is going on in one is ended first."""
    from cli.pages.session_removal import remove_all

    store = _store()
    raise typer.Exit(remove_all(store, [store.existing(name) for name in sessions], is_agreed=yes))


@app.command("fork")
def fork_session(
    session: SessionArgument,
    new_id: Annotated[str | None, typer.Argument(metavar="NEW_ID", help="Id of the copy.")] = None,
) -> None:
    """Copy a session under another id. It is printed; what happens in one does not concern the other."""
    from agent.sessions.upkeep.copying import fork

    store = _store()
    show([fork(store, store.existing(session), new_id).id])


@app.command("export")
def export_session(
    session: SessionArgument,
    *,
    form: Annotated[
        Literal["markdown", "json"] | None, typer.Option("--format", help="By default markdown, or json for FILE.json.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it to a file.")] = None,
) -> None:
    """Write a session down: Markdown for people, JSON for programs."""
    from cli.pages.session_removal import export

    export(_store().existing(session), form=form, output=output)


@app.command("search")
def search_sessions(
    words: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to look for, whatever its case.")],
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also in everything that was said, run and changed.")] = False,
    limit: LimitOption = 50,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find text in what was asked and answered. The exit code is 1 when it is nowhere."""
    from agent.sessions.views.search import search
    from cli.pages.session_pages import hits, marked_hits

    text = " ".join(words)
    found = search(_store(), text, is_deep=deep)
    shown = list(islice(found, None if every else limit))
    if as_json:
        show_json(encode(shown))
    elif (room := width()) is None:
        show(hits(shown) if shown else [])
    elif shown:
        show_painted("\n".join([*marked_hits(shown, text, width=room, paint=stdout_paint()), ""]))
    else:
        tell("it is nowhere" if deep else "it is nowhere in what was asked and answered; --deep looks everywhere")
    if next(found, None) is not None:
        typer.echo("there is more; --all shows it", err=True)
    raise typer.Exit(exit_codes.OK if shown else exit_codes.FAILED)


@app.command("gc")
def collect_garbage(
    *,
    older_than: Annotated[str | None, typer.Option("--older-than", help="Unused for so long: 12h, 30d, 4w.")] = None,
    keep: Annotated[int | None, typer.Option("--keep", min=0, help="The newest so many stay in any case.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them, instead of listing them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Clear away old sessions and leftovers. Without --yes they are only listed; by default after 30 days."""
    from cli.durations import days
    from cli.pages.session_removal import collect_old

    by_default = "30d" if older_than is None and keep is None else older_than
    age_s = None if by_default is None else days(by_default, "--older-than") * 86400
    collect_old(_store(), older_than_s=age_s, keep=keep or 0, is_agreed=yes, as_json=as_json)


@app.command("fsck")
def check_sessions(
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="Only this one.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what is wrong and change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find and mend what crashes, full disks and hands did to sessions. The exit code is 1 when something was wrong."""
    from cli.pages.session_removal import check_all

    folders = [_store().existing(session)] if session else _store().all()
    raise typer.Exit(check_all(folders, mends=not dry_run, as_json=as_json, is_named=session is not None))


@app.command("diff")
def diff(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    by_step: Annotated[bool, typer.Option("--by-step", help="Every change by itself instead of the sum.")] = False,
) -> None:
    """Show what the file tools of a session changed, as unified diffs."""
    from cli.pages.session_changes import show_diff

    show_diff(_store().existing(session), run=run, step=step, by_step=by_step)


@app.command("undo")
def undo(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    yes: YesOption = False,
    force: Annotated[bool, typer.Option("--force", help="Also files that were changed since.")] = False,
) -> None:
    """Put files back as they were. Before the session, a run or a step; an undo can be undone itself."""
    from cli.pages.session_changes import take_back

    raise typer.Exit(take_back(_store().existing(session), run=run, step=step, is_agreed=yes, is_forced=force))


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _object(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return data
