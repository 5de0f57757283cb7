"""Session maintenance: remove, garbage-collect, check and export."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import typer

from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.export import load_document, render_markdown
from agent.sessions.upkeep.fsck import Problem, check_session
from agent.sessions.upkeep.gc import ExpiredSession, delete_orphan, find_expired, find_orphans, remove, remove_if_unused
from agent.sessions.views.listing import RUNNING, SessionRow, session_row
from agent.sessions.views.titles import custom_title
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import InputError, SessionBusy, UsageError
from cli.pages.columns import Column, render_table
from cli.pages.pages import (
    NO_CONFIRMATION,
    format_age,
    format_size,
    one_line,
    print_json,
    print_lines,
    print_notice,
    print_text,
    terminal_width,
)
from cli.run.progress import print_stderr
from cli.safe_write import write_user_file
from cli.screen.format import shorten_path
from cli.screen.sanitize import to_safe_json
from tooling.contract.json_codec import encode

YES_REMOVES = "--yes removes them"


def remove_all(store: SessionStore, folders: Sequence[SessionFolder], *, is_confirmed: bool) -> int:
    """Remove sessions after asking, and return the exit code."""
    folders = list(dict.fromkeys(folders))
    if not is_confirmed and not _confirm([session_row(folder) for folder in folders]):
        return exit_codes.FAILED
    for folder in folders:
        remove(store, folder)
        typer.echo(f"removed {folder.id}", err=True)
    return exit_codes.OK


def run_gc(store: SessionStore, *, older_than_s: float | None, keep: int, is_confirmed: bool, as_json: bool) -> None:
    """List expired sessions and leftovers, or remove them if `is_confirmed`."""
    expired = find_expired(store, older_than_s=older_than_s, keep=keep)
    if is_confirmed:
        expired = [session for session in expired if remove_if_unused(store, session)]
    orphans = find_orphans(store)
    if is_confirmed:
        for path in orphans:
            delete_orphan(path)
    if as_json:
        sessions = [_expired_json(session) for session in expired]
        print_json({"removed": is_confirmed, "sessions": sessions, "orphans": [str(path) for path in orphans]})
        return
    if not is_confirmed:
        print_lines([*_expired_table(expired, terminal_width()), *(shorten_path(str(path)) for path in orphans)])
    total = f"{_pluralize(len(expired), 'session')}, {format_size(sum(session.size_bytes for session in expired))}; "
    total += _pluralize(len(orphans), "leftover") + " of crashes"
    typer.echo(f"removed {total}" if is_confirmed else f"{total}; {YES_REMOVES}", err=True)


def _confirm(rows: Sequence[SessionRow]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(NO_CONFIRMATION, "--yes removes without asking")
    for row in rows:
        running = "; its run is stopped first" if row.status == RUNNING else ""
        typer.echo(f"  {row.id}  {one_line(row.title, 60)}  ({_pluralize(row.runs, 'run')}{running})", err=True)
    return typer.confirm(f"remove {_pluralize(len(rows), 'session')} and all their data?", err=True)


def _expired_table(expired: Sequence[ExpiredSession], width: int | None) -> list[str]:
    columns = [
        Column(header="ID", cells=[session.folder.id for session in expired]),
        Column(header="AGE", cells=[format_age(_modified_time(session)) for session in expired]),
        Column(header="SIZE", cells=[format_size(session.size_bytes) for session in expired]),
        Column(header="TITLE", cells=[custom_title(one.folder) for one in expired], min_width=10, drop_priority=1),
    ]
    return render_table(columns, width) if expired else []


def _expired_json(expired: ExpiredSession) -> dict[str, object]:
    return {"id": expired.folder.id, "updated_at": _modified_time(expired), "size_bytes": expired.size_bytes}


def _modified_time(expired: ExpiredSession) -> str:
    return datetime.fromtimestamp(expired.modified_at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check_all(folders: Iterable[SessionFolder], *, repair: bool, as_json: bool, is_named: bool) -> int:
    """Check sessions, print the problems and return the exit code; busy sessions are skipped unless `is_named`."""
    problems_of: dict[str, list[Problem]] = {}
    for session in folders:
        try:
            problems_of[session.id] = check_session(session, repair=repair)
        except SessionBusy as busy:
            if is_named:
                raise
            print_stderr(f"skipped: {busy.message}")
        except OSError as error:
            problem = Problem(path=str(error.filename or "."), what=f"{error.strerror}", is_mended=False)
            problems_of[session.id] = [problem]
    if as_json:
        print_json([{"session": name, "problems": encode(tuple(problems))} for name, problems in problems_of.items()])
    else:
        print_lines(_problem_line(name, problem) for name, problems in problems_of.items() for problem in problems)
    problems = [problem for some in problems_of.values() for problem in some]
    repaired = sum(problem.is_mended for problem in problems)
    typer.echo(fsck_summary(len(problems_of), len(problems), repaired), err=True)
    return exit_codes.FAILED if problems else exit_codes.OK


def fsck_summary(checked: int, problems: int, repaired: int) -> str:
    return f"{_pluralize(checked, 'session')} checked, {_pluralize(problems, 'problem')}, {repaired} repaired"


def _problem_line(session: str, problem: Problem) -> str:
    return f"{session}  {problem.path}  {problem.what}{'  (repaired)' if problem.is_mended else ''}"


ExportFormat: TypeAlias = Literal["markdown", "json"]


def export(session: SessionFolder, *, export_format: ExportFormat | None, output: Path | None) -> None:
    """Export a session to a file or stdout; the default format is JSON for `*.json` files, else Markdown."""
    document = load_document(session)
    is_json = export_format == "json" or (export_format is None and output is not None and output.suffix == ".json")
    text = _json(encode(document)) if is_json else render_markdown(document)
    if output is None:
        print_text(text)
        return
    # A script means to overwrite the file it names; a user may have forgotten that it exists.
    needs_confirmation = output.exists() and sys.stdin.isatty()
    if needs_confirmation and not typer.confirm(f"{output} already exists; replace it?", err=True):
        raise typer.Exit(exit_codes.FAILED)
    try:
        write_user_file(output, text, [Path(document.cwd)])
    except OSError as error:
        raise InputError(f"cannot write the session to {output}: {error.strerror}") from error
    print_notice(f"exported to {output}")


def _json(data: object) -> str:
    return to_safe_json(data, indent=2) + "\n"
