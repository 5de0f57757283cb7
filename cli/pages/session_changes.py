"""What the file tools of a session changed, shown as diffs and taken back."""

import sys
from pathlib import Path

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.sessions.changes.changes import (
    ChangedFile,
    RecordedChange,
    collect_changes,
    group_by_file,
    net_diff,
    step_diffs,
)
from agent.sessions.changes.undo import record_undo, summarize_undo, undo, undo_request
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages.pages import one_line, print_notice, print_styled, print_text, stdout_colors, wrap_text
from cli.screen.diff import color_diff
from cli.screen.sanitize import sanitize
from tooling.files.blobs import BlobStore
from tooling.safety.secrets.redact import Redactor

_NOTE = "changes made by commands are not recorded"


def print_diff(folder: SessionFolder, *, run: str | None, step: str | None, by_step: bool) -> None:
    """Print the changes as unified diffs: each by itself, or their sum file by file."""
    made = _read_changes(folder, run, step)
    blobs = BlobStore(folder.blobs)
    spans = [span for span in reversed(group_by_file(made)) if not span.has_all_hashes or span.before != span.after]
    redactor, paint = _redactor(), stdout_colors()
    for part in step_diffs(made) if by_step else (net_diff(span, blobs) for span in spans):
        text = redactor.redact(part)
        if sys.stdout.isatty():
            print_styled(color_diff(sanitize(text), paint))
        else:
            print_text(text)
    files = _file_count(len(group_by_file(made) if by_step else spans))
    print_notice(f"{files}; {_NOTE}" if made and (spans or by_step) else f"nothing is changed; {_NOTE}")


def undo_changes(folder: SessionFolder, *, run: str | None, step: str | None, is_agreed: bool, is_forced: bool) -> int:
    """Put the files back after asking, keep that in the log, and return the exit code."""
    lock = SessionLock(folder)
    try:
        spans = group_by_file(_read_changes(folder, run, step))
        if spans and not is_agreed and not _confirm(spans):
            return exit_codes.FAILED
        cwd = Path(read_session(folder).cwd)
        undone = undo(spans, BlobStore(folder.blobs), cwd=cwd, is_forced=is_forced, redact=_redactor().redact)
        if undone.restored or undone.refused:
            record_undo(folder, undone, request=undo_request(run, step), cwd=cwd)
    finally:
        lock.release()
    print_text(f"{wrap_text(summarize_undo(undone)) if sys.stdout.isatty() else summarize_undo(undone)}\n")
    print_notice(_NOTE)
    return exit_codes.FAILED if undone.refused else exit_codes.OK


def _redactor() -> Redactor:
    return Redactor(load_settings(environ=os_environ()).secrets)


def _read_changes(folder: SessionFolder, run: str | None, step: str | None) -> list[RecordedChange]:
    made = collect_changes(read_events(folder.events), run=run, step=step)
    if not made and (run or step):
        raise UsageError(
            "no file tool changed anything there", "`agent sessions diff SESSION --by-step` shows all changes"
        )
    return made


def _confirm(spans: list[ChangedFile]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", "--yes restores without asking")
    for span in spans:
        typer.echo(f"  {one_line(str(span.path), 1000)}", err=True)
    return typer.confirm(f"restore {_file_count(len(spans))}?", err=True)


def _file_count(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
