"""Undo: restores files to their content before a session changed them, and records that in the log."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.protocol.codec import to_line
from agent.protocol.events import (
    Envelope,
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
from agent.sessions.changes.changes import ChangedFile, collect_changes, resolve_recorded_path
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import read_all_runs, refresh_session
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import undoable_change
from tooling.files.pending_write import open_for_write

UNDO_RUN_PREFIX = "undo-"
NOT_SAVED = "{path}: its original content was not saved."
MODIFIED_SINCE = "{path} was {change} since; --force restores it anyway."
DELETED = "Deleted {path} (it was created by this session)"
ALREADY_RESTORED = "{path} already has its original content"
_STEP_ID = "undo"
_REQUEST_PREFIX = "Undo the file changes of "
_WHOLE_SESSION = "this session"
_SINCE = "everything since run "


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """The outcome of an undo; `refused` has one message for each file that was not restored."""

    restored: tuple[FileChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def undo(
    files: Iterable[ChangedFile], blobs: BlobStore, *, cwd: Path, is_forced: bool, redact: Callable[[str], str]
) -> UndoResult:
    """Restore each file to its content before the changes; a failure does not stop the others.

    Reported paths are relative to `cwd` if the run that changed the file worked there, else absolute.
    """
    restored: list[FileChange] = []
    unchanged: list[str] = []
    refused: list[str] = []
    for file in files:
        try:
            change = _restore(file, blobs, is_forced=is_forced)
        except ToolError as error:
            refused.append(str(error))
        else:
            if change is None:
                unchanged.append(file.display_path)
            else:
                path = file.display_path if file.changes[-1].root == cwd else str(file.path)
                restored.append(replace(change, path=path, diff=redact(change.diff)))
    return UndoResult(restored=tuple(restored), unchanged=tuple(unchanged), refused=tuple(refused))


def _restore(file: ChangedFile, blobs: BlobStore, *, is_forced: bool) -> FileChange | None:
    if not file.has_all_hashes:
        raise ToolError(NOT_SAVED.format(path=file.display_path))
    original = None if file.before is None else blobs.read(file.before)
    if file.before is not None and original is None:
        raise ToolError(f"{file.display_path}: the saved copy of its original content is missing.")
    with open_for_write(lambda: resolve_recorded_path(file), makes_folders=original is not None) as target:
        current = target.read()
        current_hash = None if current is None else content_hash(current.data)
        if current_hash == file.before:
            return None
        if not is_forced:
            _check_unmodified(file, current_hash)
        if current is not None:
            blobs.put(current.data)
        if original is not None:
            target.replace(original, over=current, mode=file.mode)
        elif current is not None:
            target.remove(over=current)
        return undoable_change(file.display_path, current, original)


def _check_unmodified(file: ChangedFile, current_hash: str | None) -> None:
    if current_hash != file.after:
        change = "deleted" if current_hash is None else "changed" if file.after else "created again"
        raise ToolError(MODIFIED_SINCE.format(path=file.display_path, change=change))
    if not file.is_contiguous:
        raise ToolError(f"{file.display_path} was also changed by something else in between; --force undoes that too.")


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
    lines = [_describe_restored(change) for change in undone.restored]
    lines += [ALREADY_RESTORED.format(path=path) for path in undone.unchanged]
    lines += [f"Not restored: {problem}" for problem in undone.refused]
    return "\n".join(lines) or "Nothing to undo."


def _describe_restored(change: FileChange) -> str:
    if change.status == "deleted":
        return DELETED.format(path=change.path)
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
