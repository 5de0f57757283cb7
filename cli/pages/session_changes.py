"""What the file tools of a session changed, shown as diffs and taken back."""

import sys
from pathlib import Path

import typer

from agent.config.load import load_settings
from agent.config.places import os_environ
from agent.sessions.changes.changes import Made, Span, made_in, spans_of
from agent.sessions.changes.undo import keep_undo, net_diff, step_diffs, summary_of, undo, undo_request
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages.pages import broken, one_line, show_painted, show_text, stdout_paint, tell
from cli.screen.diff import coloured
from cli.screen.sanitize import readable
from tooling.files.blobs import BlobStore
from tooling.safety.secrets.redact import Redactor

_NOTE = "changes made by commands are not recorded"


def show_diff(folder: SessionFolder, *, run: str | None, step: str | None, by_step: bool) -> None:
    """Print the changes as unified diffs: each by itself, or their sum file by file."""
    made = _made(folder, run, step)
    blobs = BlobStore(folder.blobs)
    spans = [span for span in reversed(spans_of(made)) if not span.is_known or span.before != span.after]
    redactor, paint = _redactor(), stdout_paint()
    for part in step_diffs(made) if by_step else (net_diff(span, blobs) for span in spans):
        text = redactor.redact(part)
        if sys.stdout.isatty():
            show_painted(coloured(readable(text), paint))
        else:
            show_text(text)
    files = _files(len(spans_of(made) if by_step else spans))
    tell(f"{files}; {_NOTE}" if made and (spans or by_step) else f"nothing is changed; {_NOTE}")


def take_back(folder: SessionFolder, *, run: str | None, step: str | None, is_agreed: bool, is_forced: bool) -> int:
    """Put the files back after asking, keep that in the log, and return the exit code."""
    lock = SessionLock(folder)
    try:
        spans = spans_of(_made(folder, run, step))
        if spans and not is_agreed and not _agrees(spans):
            return exit_codes.FAILED
        cwd = Path(read_session(folder).cwd)
        undone = undo(spans, BlobStore(folder.blobs), cwd=cwd, is_forced=is_forced, redact=_redactor().redact)
        if undone.restored or undone.refused:
            keep_undo(folder, undone, request=undo_request(run, step), cwd=cwd)
    finally:
        lock.release()
    show_text(f"{broken(summary_of(undone)) if sys.stdout.isatty() else summary_of(undone)}\n")
    tell(_NOTE)
    return exit_codes.FAILED if undone.refused else exit_codes.OK


def _redactor() -> Redactor:
    return Redactor(load_settings(environ=os_environ()).secrets)


def _made(folder: SessionFolder, run: str | None, step: str | None) -> list[Made]:
    made = made_in(read_events(folder.events), run=run, step=step)
    if not made and (run or step):
        raise UsageError(
            "no file tool changed anything there", "`agent sessions diff SESSION --by-step` shows all changes"
        )
    return made


def _agrees(spans: list[Span]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", "--yes restores without asking")
    for span in spans:
        typer.echo(f"  {one_line(str(span.path), 1000)}", err=True)
    return typer.confirm(f"restore {_files(len(spans))}?", err=True)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
