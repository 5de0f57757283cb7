"""Removing sessions: the named ones after a yes, the old ones by age."""

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
    format_age,
    format_size,
    one_line,
    print_json,
    print_lines,
    print_notice,
    print_text,
    shorten_path,
    terminal_width,
)
from cli.run.progress import print_stderr
from cli.safe_write import write_user_file
from cli.screen.sanitize import to_safe_json
from tooling.contract.json_codec import encode


def remove_all(store: SessionStore, folders: Sequence[SessionFolder], *, is_agreed: bool) -> int:
    """Remove sessions after asking, and return the exit code."""
    folders = list(dict.fromkeys(folders))
    if not is_agreed and not _confirm([session_row(one) for one in folders]):
        return exit_codes.FAILED
    for one in folders:
        remove(store, one)
        typer.echo(f"removed {one.id}", err=True)
    return exit_codes.OK


def run_gc(store: SessionStore, *, older_than_s: float | None, keep: int, is_agreed: bool, as_json: bool) -> None:
    """List the old sessions, or remove them."""
    old = find_expired(store, older_than_s=older_than_s, keep=keep)
    if is_agreed:
        old = [one for one in old if remove_if_unused(store, one)]
    left = find_orphans(store)
    if is_agreed:
        for path in left:
            delete_orphan(path)
    if as_json:
        print_json(
            {"removed": is_agreed, "sessions": [_expired_json(one) for one in old], "orphans": [str(p) for p in left]}
        )
        return
    if not is_agreed:
        print_lines([*_expired_table(old, terminal_width()), *(shorten_path(str(path)) for path in left)])
    total = f"{_pluralize(len(old), 'session')}, {format_size(sum(one.size_bytes for one in old))}; "
    total += _pluralize(len(left), "thing") + " that crashes left behind"
    typer.echo(f"removed {total}" if is_agreed else f"{total}; --yes removes them", err=True)


def _confirm(rows: Sequence[SessionRow]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", "--yes removes without asking")
    for row in rows:
        running = "; its run is ended first" if row.status == RUNNING else ""
        typer.echo(f"  {row.id}  {one_line(row.title, 60)}  ({_pluralize(row.runs, 'run')}{running})", err=True)
    return typer.confirm(f"remove {_pluralize(len(rows), 'session')} with all they hold?", err=True)


def _expired_table(old: Sequence[ExpiredSession], most: int | None) -> list[str]:
    columns = [
        Column(header="ID", cells=[one.folder.id for one in old]),
        Column(header="AGE", cells=[format_age(_modified_time(one)) for one in old]),
        Column(header="SIZE", cells=[format_size(one.size_bytes) for one in old]),
        Column(header="TITLE", cells=[custom_title(one.folder) for one in old], min_width=10, drop_priority=1),
    ]
    return render_table(columns, most) if old else []


def _expired_json(old: ExpiredSession) -> dict[str, object]:
    return {"id": old.folder.id, "updated_at": _modified_time(old), "size_bytes": old.size_bytes}


def _modified_time(old: ExpiredSession) -> str:
    return datetime.fromtimestamp(old.modified_at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pluralize(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def check_all(folders: Iterable[SessionFolder], *, mends: bool, as_json: bool, is_named: bool) -> int:
    """Check sessions and tell what was found; one that is busy is passed over unless it was asked for by name."""
    found: dict[str, list[Problem]] = {}
    for session in folders:
        try:
            found[session.id] = check_session(session, mends=mends)
        except SessionBusy as busy:
            if is_named:
                raise
            print_stderr(f"left out: {busy.message}")
        except OSError as error:
            problem = Problem(path=str(error.filename or "."), what=f"{error.strerror}", is_mended=False)
            found[session.id] = [problem]
    if as_json:
        print_json([{"session": name, "problems": encode(tuple(problems))} for name, problems in found.items()])
    else:
        print_lines(_problem_line(name, problem) for name, problems in found.items() for problem in problems)
    problems = [problem for some in found.values() for problem in some]
    mended = sum(problem.is_mended for problem in problems)
    typer.echo(f"{len(found)} checked, {len(problems)} problems, {mended} mended", err=True)
    return exit_codes.FAILED if problems else exit_codes.OK


def _problem_line(session: str, problem: Problem) -> str:
    return f"{session}  {problem.path}  {problem.what}{'  (mended)' if problem.is_mended else ''}"


ExportFormat: TypeAlias = Literal["markdown", "json"]


def export(session: SessionFolder, *, form: ExportFormat | None, output: Path | None) -> None:
    """Write a session in the asked-for form; without one the file's name decides, else it is Markdown."""
    document = load_document(session)
    is_json = form == "json" or (form is None and output is not None and output.suffix == ".json")
    text = _json(encode(document)) if is_json else render_markdown(document)
    if output is None:
        print_text(text)
        return
    # A script that names a file means it; a person may have forgotten that it is there.
    is_asked = output.exists() and sys.stdin.isatty()
    if is_asked and not typer.confirm(f"{output} is there already; replace it?", err=True):
        raise typer.Exit(exit_codes.FAILED)
    try:
        write_user_file(output, text, [Path(document.cwd)])
    except OSError as error:
        raise InputError(f"the session cannot be written to {output}: {error.strerror}") from error
    print_notice(f"written to {output}")


def _json(data: object) -> str:
    return to_safe_json(data, indent=2) + "\n"
