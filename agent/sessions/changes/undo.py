"""Undo: restores files to their content before a session changed them, and records that in the log."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    Event,
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    SessionRewound,
    StepCompleted,
    StepCounts,
    StepStarted,
)
from agent.sessions.changes.changes import ChangedFile, collect_changes
from agent.sessions.changes.restore import NotEmpty, restore
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import read_all_runs, refresh_session
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore

UNDO_RUN_PREFIX = "undo-"
DELETED = "Deleted {path} (it was created by this session)"
KEPT_FOLDER = "Kept the folder {path}: it is not empty"
PERHAPS_OTHERS = "{path} may have been changed by {steps} as well, which ran at the same time"
ALREADY_RESTORED = "{path} already has its original content"
_STEP_ID = "undo"
_REQUEST_PREFIX = "Undo the file changes of "
_WHOLE_SESSION = "this session"
_SINCE = "everything since run "


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """The outcome of an undo; `refused` has one message for each file that was not restored, `notes` are remarks."""

    restored: tuple[FileChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def undo(
    files: Iterable[ChangedFile],
    blobs: BlobStore,
    *,
    cwd: Path,
    is_forced: bool,
    redact: Callable[[str], str],
    skipped: Iterable[str] = (),
) -> UndoResult:
    """Restore each file to its content before the changes; a failure does not stop the others.

    `skipped` are other changes, which cannot be restored. Reported paths are relative to `cwd` if the run that
    changed the file worked there, else absolute.
    """
    restored: list[FileChange] = []
    unchanged: list[str] = []
    refused = list(skipped)
    notes: list[str] = []
    files = _in_order(files)
    steps = {recorded.step_id for file in files for recorded in file.changes}
    for file in files:
        try:
            changes = restore(file, blobs, is_forced=is_forced)
        except ToolError as error:
            refused.append(str(error))
        except NotEmpty:
            notes.append(KEPT_FOLDER.format(path=file.display_path))
        else:
            path = file.display_path if file.changes[-1].root == cwd else str(file.path)
            restored += [replace(change, path=path, diff=redact(change.diff)) for change in changes]
            if changes:
                notes += _doubts(file, steps)
            elif "folder" not in (file.kind_before, file.kind_after):
                unchanged.append(file.display_path)
    return UndoResult(restored=tuple(restored), unchanged=tuple(unchanged), refused=tuple(refused), notes=tuple(notes))


def _doubts(file: ChangedFile, undone_steps: set[str]) -> list[str]:
    """Return the steps whose changes may have been undone, too, because their commands ran at the same time."""
    others = sorted({step for recorded in file.changes for step in recorded.overlaps} - undone_steps)
    return [PERHAPS_OTHERS.format(path=file.display_path, steps=", ".join(others))] if others else []


def _in_order(files: Iterable[ChangedFile]) -> list[ChangedFile]:
    """Sort so that every folder exists while something is restored in it, and is empty when it is removed."""
    files = list(files)
    removed = [file for file in files if file.kind_after == "folder"]
    created = [file for file in files if file.kind_before == "folder" != file.kind_after or _is_lost_folder(file)]
    others = [file for file in files if file not in removed and file not in created]
    removed = [file for file in removed if file not in created]
    return [
        *sorted(created, key=lambda file: file.path),
        *others,
        *sorted(removed, key=lambda file: file.path, reverse=True),
    ]


def _is_lost_folder(file: ChangedFile) -> bool:
    return file.kind_before == file.kind_after == "folder" and file.before is not None and file.after is None


def record_undo(
    folder: SessionFolder, undone: UndoResult, *, request: str, cwd: Path, rewound_to: str | None = None
) -> str:
    """Append the undo to the log as a run, refresh SESSION.json, and return the run id. Needs the session's lock.

    `rewound_to` is the run that a rewind removes from the conversation, with all later ones.
    """
    now = datetime.now(UTC)
    run_id = f"{UNDO_RUN_PREFIX}{now:%Y%m%d%H%M%S}-{uuid.uuid4().hex[:6]}"
    ts = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = last_seq(folder.events) + 1
    envelopes = [
        Envelope(
            seq=first + number,
            ts=ts,
            session_id=folder.id,
            run_id=run_id,
            event=event,
            step_id=_STEP_ID if isinstance(event, (StepStarted, FilesChanged, StepCompleted)) else None,
            attempt=1 if isinstance(event, (StepStarted, FilesChanged, StepCompleted)) else None,
        )
        for number, event in enumerate(
            _build_events(folder, undone, request=request, cwd=cwd, plan_id=run_id, rewound_to=rewound_to)
        )
    ]
    log = FileLog(folder.events)
    try:
        log.append(b"".join(map(to_line, envelopes)))
    finally:
        log.close()
    refresh_session(folder)
    return run_id


def summarize_undo(undone: UndoResult) -> str:
    """Describe an undo for the user, one line for each file."""
    became = {change.path for change in undone.restored if change.status == "added"}
    lines = [
        _describe_restored(change)
        for change in undone.restored
        # A replacement is reported once.
        if change.status != "deleted" or change.path not in became
    ]
    lines += [ALREADY_RESTORED.format(path=path) for path in undone.unchanged]
    lines += [*undone.notes, *(f"Not restored: {problem}" for problem in undone.refused)]
    return "\n".join(lines) or "Nothing to undo."


def _describe_restored(change: FileChange) -> str:
    if change.status == "deleted":
        return DELETED.format(path=change.path)
    if change.kind == "folder":
        return f"Restored the folder {change.path}"
    return f"Restored {change.path}" + (" (it had been deleted)" if change.status == "added" else "")


def _build_events(
    folder: SessionFolder, undone: UndoResult, *, request: str, cwd: Path, plan_id: str, rewound_to: str | None
) -> list[Event]:
    code = exit_codes.FAILED if undone.refused else exit_codes.OK
    step = PlanStep(id=_STEP_ID, title="Restore files", instruction="Restore files", type="tool")
    ending = StepCompleted(status="error" if code else "ok", summary=summarize_undo(undone))
    return [
        RunStarted(
            model="",
            planner_model="",
            cwd=str(cwd),
            workspace=str(folder.workspace),
            backend="",
            approval_mode="",
            tools=(),
        ),
        MessageAdded(role="user", content=request),
        PlanUpdated(plan_id=plan_id, revision=1, hash=plan_id, reason="request", steps=(step,)),
        StepStarted(title=step.title),
        *([FilesChanged(changes=undone.restored)] if undone.restored else []),
        ending,
        *([SessionRewound(before_run=rewound_to)] if rewound_to else []),
        RunCompleted(
            subtype=exit_codes.SUBTYPES[code],
            is_error=bool(code),
            exit_code=code,
            result=ending.summary,
            plan_id=plan_id,
            steps=StepCounts(failed=1) if code else StepCounts(ok=1),
            artifacts=tuple(change.path for change in undone.restored),
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoHistory:
    """Runs whose changes can be undone, and undos that can be redone; newest last."""

    undoable: tuple[str, ...] = ()
    redoable: tuple[str, ...] = ()


def undo_request(run: str | None, step: str | None) -> str:
    """Return the request under which an undo is logged; `undo_history` parses it."""
    return _REQUEST_PREFIX + (f"step {step}" if step else f"run {run}" if run else _WHOLE_SESSION)


def rewind_request(run: str) -> str:
    """Return the request under which a rewind is logged."""
    return f"{_REQUEST_PREFIX}{_SINCE}{run}"


def undo_history(folder: SessionFolder) -> UndoHistory:
    """Return the runs of a session that can be undone, and the undos that can be redone."""
    changed = {recorded.run_id for recorded in collect_changes(read_events(folder.events))}
    undoable: list[str] = []
    redoable: list[str] = []
    order: list[str] = []
    for run in read_all_runs(folder).runs:
        order.append(run.run_id)
        if run.run_id not in changed:
            continue
        if not run.run_id.startswith(UNDO_RUN_PREFIX):
            undoable.append(run.run_id)
            continue
        scope = run.user.removeprefix(_REQUEST_PREFIX)
        # Undoing an undo is a redo.
        source, target = (redoable, undoable) if scope.removeprefix("run ") in redoable else (undoable, redoable)
        # A partial undo can be tried again.
        if run.subtype == "success":
            since = order.index(scope.removeprefix(_SINCE)) if scope.startswith(_SINCE) else len(order)
            source[:] = [
                run_id
                for run_id in source
                if scope not in (_WHOLE_SESSION, f"run {run_id}") and order.index(run_id) < since
            ]
        target.append(run.run_id)
    return UndoHistory(undoable=tuple(undoable), redoable=tuple(redoable))
