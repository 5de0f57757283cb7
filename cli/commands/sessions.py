"""`agent sessions`: what was asked in them, what they changed, and how to take it back."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.places import data_dir, os_environ
from agent.sessions.changes import Made, Span, made_in, spans_of
from agent.sessions.diffs import net_diff, step_diffs
from agent.sessions.event_log import read_events
from agent.sessions.fold import RunRecord, SessionRecord, read_session
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from agent.sessions.undo import undo as take_back
from agent.sessions.undo_log import keep_undo, summary_of
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from tooling.contract.shape import encode
from tooling.files.blobs import BlobStore
from tooling.output import sanitize_output
from tooling.safety.redact import Redactor

app = typer.Typer(help="Sessions and what they changed.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session, or the beginning of it.")]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only what this run changed.")]
StepOption = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="Only this step, of --run or of the newest run that has it."),
]
_NOTE = "changes made by commands are not recorded"
_REQUEST_CHARS = 60


@app.command("list")
def list_sessions(*, as_json: JsonOption = False) -> None:
    """List the sessions, the newest first."""
    records = [read_session(folder) for folder in _store().all()]
    records.sort(key=lambda record: record.updated_at, reverse=True)
    if as_json:
        typer.echo(json.dumps([_row(record) for record in records], indent=2, ensure_ascii=False))
        return
    for record in records:
        request = _line(record.runs[-1].user if record.runs else "")
        typer.echo(f"{record.id}  {record.updated_at[:16]}  {len(record.runs):>3} runs  {record.cwd}  {request}")
    if not records:
        typer.echo("(no sessions)")


@app.command("show")
def show(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """Show a session: its folder, its runs, what was asked and answered."""
    record = read_session(_store().existing(session))
    if as_json:
        typer.echo(json.dumps(encode(record), indent=2, ensure_ascii=False))
        return
    typer.echo(f"{record.id}\n  created  {record.created_at}\n  updated  {record.updated_at}\n  folder   {record.cwd}")
    for run in record.runs:
        typer.echo("\n".join(_run_lines(run)))


@app.command("diff")
def diff(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    by_step: Annotated[bool, typer.Option("--by-step", help="Every change by itself instead of the sum.")] = False,
) -> None:
    """Show what the file tools of a session changed, as unified diffs."""
    folder = _store().existing(session)
    made = _made(folder, run, step)
    blobs = BlobStore(folder.blobs)
    parts = step_diffs(made) if by_step else (net_diff(span, blobs) for span in reversed(spans_of(made)))
    redactor = _redactor()
    for part in parts:
        text = redactor.redact(part)
        # What a file holds must not move the cursor; a program gets the bytes as they are.
        typer.echo(sanitize_output(text) if sys.stdout.isatty() else text, nl=False)
    typer.echo(f"{_files(len(spans_of(made)))}; {_NOTE}", err=True)


@app.command("undo")
def undo(
    session: SessionArgument,
    *,
    run: RunOption = None,
    step: StepOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also files that were changed since.")] = False,
) -> None:
    """Put files back as they were before the session, a run or a step; an undo can be undone itself."""
    folder = _store().existing(session)
    lock = SessionLock(folder)
    try:
        spans = spans_of(_made(folder, run, step))
        if spans and not yes and not _is_agreed(spans):
            raise typer.Exit(exit_codes.FAILED)
        cwd = Path(read_session(folder).cwd)
        undone = take_back(spans, BlobStore(folder.blobs), cwd=cwd, is_forced=force, redact=_redactor().redact)
        if undone.restored or undone.refused:
            keep_undo(folder, undone, request=_request(run, step), cwd=cwd)
    finally:
        lock.release()
    typer.echo(summary_of(undone))
    typer.echo(_NOTE, err=True)
    if undone.refused:
        raise typer.Exit(exit_codes.FAILED)


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _redactor() -> Redactor:
    return Redactor(load_settings(environ=os_environ()).secrets)


def _made(folder: SessionFolder, run: str | None, step: str | None) -> list[Made]:
    made = made_in(read_events(folder.events), run=run, step=step)
    if not made and (run or step):
        raise UsageError(
            "no file tool changed anything there", "`agent sessions diff SESSION --by-step` shows all changes"
        )
    return made


def _is_agreed(spans: list[Span]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", "--yes restores without asking")
    for span in spans:
        typer.echo(f"  {span.path}", err=True)
    return typer.confirm(f"restore {_files(len(spans))}?", err=True)


def _request(run: str | None, step: str | None) -> str:
    return "Undo the file changes of " + (f"step {step}" if step else f"run {run}" if run else "this session")


def _row(record: SessionRecord) -> dict[str, object]:
    last = record.runs[-1] if record.runs else None
    return {
        "id": record.id,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "cwd": record.cwd,
        "runs": len(record.runs),
        "last_request": last.user if last else "",
        "last_subtype": last.subtype if last else "",
    }


def _run_lines(run: RunRecord) -> list[str]:
    ending = run.subtype if run.exit_code is None else f"{run.subtype}, exit {run.exit_code}"
    lines = [f"{run.run_id}  {run.date[:16]}  {ending}", f"  asked     {_line(run.user)}"]
    lines += [f"  {step.id:<8}  {step.status}: {_line(step.summary)}" for step in run.step_results]
    return [*lines, f"  answered  {_line(run.final)}"]


def _line(text: str) -> str:
    words = " ".join(sanitize_output(text).split())
    return words if len(words) <= _REQUEST_CHARS else words[: _REQUEST_CHARS - 1] + "…"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
