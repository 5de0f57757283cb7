"""The file changes of a session: print them as diffs, and undo them."""

import sys
from pathlib import Path

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.sessions.changes.changes import (
    ChangedFile,
    RecordedChange,
    collect_changes,
    collect_skipped,
    group_by_file,
    net_diff,
    step_diffs,
)
from agent.sessions.changes.undo import record_undo, summarize_undo, undo, undo_request
from agent.sessions.checkpoints.recovery import record_lost_changes, recover
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import UsageError
from cli.pages.pages import NO_CONFIRMATION, one_line, print_notice, print_styled, print_text, stdout_colors, wrap_text
from cli.screen.diff import color_diff
from cli.screen.sanitize import sanitize
from tooling.files.blobs import BlobStore
from tooling.safety.secrets.redact import Redactor


def print_diff(folder: SessionFolder, *, run: str | None, step: str | None, by_step: bool) -> None:
    """Print unified diffs: one for each recorded change, or the net diff of each file."""
    record_lost_changes(folder, _redactor())
    changes = _read_changes(folder, run, step)
    blobs = BlobStore(folder.blobs)
    files = [file for file in reversed(group_by_file(changes)) if file.is_changed]
    redactor, paint = _redactor(), stdout_colors()
    for diff in step_diffs(changes, blobs) if by_step else (net_diff(file, blobs) for file in files):
        text = redactor.redact(diff)
        if sys.stdout.isatty():
            print_styled(color_diff(sanitize(text), paint))
        else:
            print_text(text)
    count = _counts(group_by_file(changes) if by_step else files)
    for text in collect_skipped(read_events(folder.events), run=run, step=step):
        print_notice(f"not shown: {sanitize(text)}")
    print_notice(count if changes and (files or by_step) else "no changes")


def undo_changes(
    folder: SessionFolder, *, run: str | None, step: str | None, is_confirmed: bool, is_forced: bool
) -> int:
    """Restore the files after asking, record that in the log, and return the exit code."""
    lock = SessionLock(folder)
    try:
        recover(folder, _redactor())
        files = group_by_file(_read_changes(folder, run, step))
        if files and not is_confirmed and not _confirm(files):
            return exit_codes.FAILED
        cwd = Path(read_session(folder).cwd)
        undone = undo(
            files,
            BlobStore(folder.blobs),
            cwd=cwd,
            is_forced=is_forced,
            redact=_redactor().redact,
            skipped=collect_skipped(read_events(folder.events), run=run, step=step),
        )
        if undone.restored or undone.refused:
            record_undo(folder, undone, request=undo_request(run, step), cwd=cwd)
    finally:
        lock.release()
    print_text(f"{wrap_text(summarize_undo(undone)) if sys.stdout.isatty() else summarize_undo(undone)}\n")
    return exit_codes.FAILED if undone.refused else exit_codes.OK


def _redactor() -> Redactor:
    return Redactor(load_settings(environ=os_environ()).secrets)


def _read_changes(folder: SessionFolder, run: str | None, step: str | None) -> list[RecordedChange]:
    changes = collect_changes(read_events(folder.events), run=run, step=step)
    skipped = collect_skipped(read_events(folder.events), run=run, step=step)
    if not changes and not skipped and (run or step):
        raise UsageError("no file changes are recorded there", "`agent sessions diff SESSION --by-step` shows them all")
    return changes


def _confirm(files: list[ChangedFile]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(NO_CONFIRMATION, "--yes restores without asking")
    for file in files:
        typer.echo(f"  {one_line(str(file.path), 1000)}", err=True)
    return typer.confirm(f"restore {_counts(files)}?", err=True)


def _counts(changed: list[ChangedFile]) -> str:
    folders = sum(file.kind_before == file.kind_after == "folder" for file in changed)
    counts = (("file", len(changed) - folders), ("folder", folders))
    return " and ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts if count)
