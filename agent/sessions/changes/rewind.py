"""Rewind: reverts a request and everything after it, in the files and in the conversation."""

from collections.abc import Callable
from pathlib import Path

from agent.sessions.changes.changes import collect_changes, collect_skipped, group_by_file
from agent.sessions.changes.undo import UndoResult, record_undo, rewind_request, undo
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import RunRecord, active_runs, read_all_runs
from agent.vocabulary.errors import UsageError
from tooling.files.blobs import BlobStore

_RUN_PREFIX = "run-"


def rewindable_runs(folder: SessionFolder) -> list[RunRecord]:
    """Return the runs that a session can be rewound to, newest first: one for each request of the conversation."""
    runs = active_runs(read_all_runs(folder).runs)
    return [run for run in reversed(runs) if run.run_id.startswith(_RUN_PREFIX) and run.user and not run.resumes]


def rewind(folder: SessionFolder, run_id: str, *, redact: Callable[[str], str]) -> UndoResult:
    """Restore the files to before a run, and log that the run and all later ones left the conversation.

    A file that others changed since is left alone and named in the result. Raises SessionBusy if the
    session is running, UsageError if the run is not in its conversation.
    """
    lock = SessionLock(folder)
    try:
        record = read_all_runs(folder)
        if run_id not in (run.run_id for run in active_runs(record.runs)):
            raise UsageError(f"run {run_id} is not in the conversation of this session")
        order = [run.run_id for run in record.runs]
        # Undos since then are reverted, too: the files get their content from before the run.
        later = set(order[order.index(run_id) :])
        changes = [change for change in collect_changes(read_events(folder.events)) if change.run_id in later]
        skipped = [text for run in later for text in collect_skipped(read_events(folder.events), run=run)]
        cwd = Path(record.cwd)
        undone = undo(
            group_by_file(changes), BlobStore(folder.blobs), cwd=cwd, is_forced=False, redact=redact, skipped=skipped
        )
        record_undo(folder, undone, request=rewind_request(run_id), cwd=cwd, rewound_to=run_id)
    finally:
        lock.release()
    return undone
