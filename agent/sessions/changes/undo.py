"""Putting files back as they were before a session's tools changed them, unless somebody changed them since."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from agent.protocol.codec import to_line
from agent.protocol.events import (
    Envelope,
    Event,
    FilesChanged,
    MessageSaid,
    PlanMade,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepCounts,
    StepStarted,
)
from agent.sessions.changes.changes import ChangedFile, RecordedChange, collect_changes
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import read_all_runs, refresh_session
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import as_text, undoable_change
from tooling.files.file_diff import compute_change
from tooling.files.pending_write import open_for_write
from tooling.files.resolve import ResolvedPath


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """What an undo did: files put back, and why others were not."""

    restored: tuple[FileChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def undo(
    spans: Iterable[ChangedFile], blobs: BlobStore, *, cwd: Path, is_forced: bool, redact: Callable[[str], str]
) -> UndoResult:
    """Restore each file to what it held before; one that cannot be restored does not hold up the others.

    What is reported stands relative to `cwd` where the run that changed it worked there, else in full.
    """
    restored: list[FileChange] = []
    unchanged: list[str] = []
    refused: list[str] = []
    for span in spans:
        try:
            change = _restore(span, blobs, is_forced=is_forced)
        except ToolError as error:
            refused.append(str(error))
        else:
            if change is None:
                unchanged.append(span.display_path)
            else:
                path = span.display_path if span.changes[-1].root == cwd else str(span.path)
                restored.append(replace(change, path=path, diff=redact(change.diff)))
    return UndoResult(restored=tuple(restored), unchanged=tuple(unchanged), refused=tuple(refused))


def resolve_recorded_path(span: ChangedFile) -> ResolvedPath:
    """Return where a recorded path leads: below its run's folder, or below / for one outside of it."""
    root = span.changes[-1].root
    below = PurePosixPath(span.display_path)
    if below.is_absolute():
        root, below = Path("/"), below.relative_to("/")
    if ".." in below.parts:
        raise ToolError(f"{span.display_path} is not a path that a tool wrote.")
    return ResolvedPath(root=root, relative_path=str(below), display_path=span.display_path)


def _restore(span: ChangedFile, blobs: BlobStore, *, is_forced: bool) -> FileChange | None:
    if not span.has_all_hashes:
        raise ToolError(f"{span.display_path}: what it held was not kept.")
    wanted = None if span.before is None else blobs.read(span.before)
    if span.before is not None and wanted is None:
        raise ToolError(f"{span.display_path}: the copy of what it held is gone.")
    with open_for_write(lambda: resolve_recorded_path(span), makes_folders=wanted is not None) as file:
        now = file.read()
        holds = None if now is None else content_hash(now.data)
        if holds == span.before:
            return None
        if not is_forced:
            _check_unmodified(span, holds)
        if now is not None:
            blobs.put(now.data)
        if wanted is not None:
            file.replace(wanted, over=now, mode=span.mode)
        elif now is not None:
            file.remove(over=now)
        return undoable_change(span.display_path, now, wanted)


def _check_unmodified(span: ChangedFile, holds: str | None) -> None:
    if holds != span.after:
        what = "was deleted" if holds is None else "was changed" if span.after else "was made again"
        raise ToolError(f"{span.display_path} {what} since; --force restores it all the same.")
    if not span.is_contiguous:
        raise ToolError(f"{span.display_path} was also changed by others in between; --force takes that back too.")


# How the ids of runs begin that take changes back.
UNDO_RUN_PREFIX = "undo-"
_STEP_ID = "undo"


def record_undo(folder: SessionFolder, undone: UndoResult, *, request: str, cwd: Path) -> str:
    """Append the undo to the log and refresh SESSION.json; return its run id. The session must be held."""
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
        for number, event in enumerate(_build_events(folder, undone, request=request, cwd=cwd, plan_id=run_id))
    ]
    log = FileLog(folder.events)
    try:
        log.append(b"".join(map(to_line, envelopes)))
    finally:
        log.close()
    refresh_session(folder)
    return run_id


def summarize_undo(undone: UndoResult) -> str:
    """Return what was done in a few lines."""
    lines = [f"Restored {change.path}" + _status_note(change.status) for change in undone.restored]
    lines += [f"{name} is already as it was" for name in undone.unchanged]
    lines += [f"Not restored: {problem}" for problem in undone.refused]
    return "\n".join(lines) or "Nothing to undo."


def _status_note(status: str) -> str:
    return {"added": " (it had been deleted)", "deleted": " (it had been made; it is gone)"}.get(status, "")


def _build_events(folder: SessionFolder, undone: UndoResult, *, request: str, cwd: Path, plan_id: str) -> list[Event]:
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
        MessageSaid(role="user", content=request),
        PlanMade(plan_id=plan_id, revision=1, hash=plan_id, reason="request", steps=(step,)),
        StepStarted(title=step.title),
        *([FilesChanged(changes=undone.restored)] if undone.restored else []),
        ending,
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


_REQUEST_PREFIX = "Undo the file changes of "
_WHOLE_SESSION = "this session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoHistory:
    """Runs whose changes stand, and undos that can be taken back themselves; the newest last."""

    undoable: tuple[str, ...] = ()
    redoable: tuple[str, ...] = ()


def undo_request(run: str | None, step: str | None) -> str:
    """Return what an undo is called in the log."""
    return _REQUEST_PREFIX + (f"step {step}" if step else f"run {run}" if run else _WHOLE_SESSION)


def undo_history(folder: SessionFolder) -> UndoHistory:
    """Return in which order a session's changes can be taken back and made again."""
    changed = {made.run_id for made in collect_changes(read_events(folder.events))}
    standing: list[str] = []
    taken_back: list[str] = []
    for run in read_all_runs(folder).runs:
        if run.run_id not in changed:
            continue
        if not run.run_id.startswith(UNDO_RUN_PREFIX):
            standing.append(run.run_id)
            continue
        what = run.user.removeprefix(_REQUEST_PREFIX)
        before, after = (taken_back, standing) if what.removeprefix("run ") in taken_back else (standing, taken_back)
        # What was taken back only in part can be tried again.
        if run.subtype == "success":
            before[:] = [name for name in before if what not in (_WHOLE_SESSION, f"run {name}")]
        after.append(run.run_id)
    return UndoHistory(undoable=tuple(standing), redoable=tuple(taken_back))


_MAX_DIFF_CHARS = 1 << 40


def net_diff(span: ChangedFile, blobs: BlobStore) -> str:
    """Return the effect of all changes of a file together; where a content is gone, the recorded diffs instead."""
    before = _content(span.before, span, blobs)
    after = _content(span.after, span, blobs)
    is_complete = (before is not None or span.before is None) and (after is not None or span.after is None)
    if span.has_all_hashes and is_complete:
        return compute_change(span.display_path, as_text(before), as_text(after), max_chars=_MAX_DIFF_CHARS).diff
    return "".join(made.change.diff for made in span.changes)


def step_diffs(made: list[RecordedChange]) -> Iterator[str]:
    """Yield the recorded diffs change by change, each under the step that made it."""
    for one in made:
        yield f"# {one.run_id} {one.step_id}: {one.change.path} ({one.change.status})\n{one.change.diff}"


def _content(name: str | None, span: ChangedFile, blobs: BlobStore) -> bytes | None:
    """Return the content of a hash: a kept copy, or the file itself while it still holds that."""
    if name is None:
        return None
    kept = blobs.read(name)
    if kept is not None:
        return kept
    try:
        with open_for_write(lambda: resolve_recorded_path(span), makes_folders=False) as file:
            now = file.read()
    except ToolError:
        return None
    return now.data if now is not None and content_hash(now.data) == name else None
