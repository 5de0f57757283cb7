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
from agent.sessions.changes.changes import Made, Span, made_in
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import read_every_run, refresh_session
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, hash_of
from tooling.files.change_file import as_text, recorded
from tooling.files.file_diff import change_of
from tooling.files.pending_write import target
from tooling.files.resolve import Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo did: files put back, and why others were not."""

    restored: tuple[FileChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def undo(
    spans: Iterable[Span], blobs: BlobStore, *, cwd: Path, is_forced: bool, redact: Callable[[str], str]
) -> Undone:
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
                unchanged.append(span.shown)
            else:
                path = span.shown if span.changes[-1].root == cwd else str(span.path)
                restored.append(replace(change, path=path, diff=redact(change.diff)))
    return Undone(restored=tuple(restored), unchanged=tuple(unchanged), refused=tuple(refused))


def spot_of(span: Span) -> Spot:
    """Return where a recorded path leads: below its run's folder, or below / for one outside of it."""
    root = span.changes[-1].root
    below = PurePosixPath(span.shown)
    if below.is_absolute():
        root, below = Path("/"), below.relative_to("/")
    if ".." in below.parts:
        raise ToolError(f"{span.shown} is not a path that a tool wrote.")
    return Spot(root=root, below=str(below), shown=span.shown)


def _restore(span: Span, blobs: BlobStore, *, is_forced: bool) -> FileChange | None:
    if not span.is_known:
        raise ToolError(f"{span.shown}: what it held was not kept.")
    wanted = None if span.before is None else blobs.read(span.before)
    if span.before is not None and wanted is None:
        raise ToolError(f"{span.shown}: the copy of what it held is gone.")
    with target(lambda: spot_of(span), makes_folders=wanted is not None) as file:
        now = file.content()
        holds = None if now is None else hash_of(now.data)
        if holds == span.before:
            return None
        if not is_forced:
            _check(span, holds)
        if now is not None:
            blobs.keep(now.data)
        if wanted is not None:
            file.replace(wanted, over=now, mode=span.mode)
        elif now is not None:
            file.remove(over=now)
        return recorded(span.shown, now, wanted)


def _check(span: Span, holds: str | None) -> None:
    if holds != span.after:
        what = "was deleted" if holds is None else "was changed" if span.after else "was made again"
        raise ToolError(f"{span.shown} {what} since; --force restores it all the same.")
    if not span.is_unbroken:
        raise ToolError(f"{span.shown} was also changed by others in between; --force takes that back too.")


# How the ids of runs begin that take changes back.
UNDO = "undo-"
_STEP = "undo"


def keep_undo(folder: SessionFolder, undone: Undone, *, request: str, cwd: Path) -> str:
    """Append the undo to the log and refresh SESSION.json; return its run id. The session must be held."""
    now = datetime.now(UTC)
    run_id = f"{UNDO}{now:%Y%m%d%H%M%S}-{uuid.uuid4().hex[:6]}"
    ts = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = last_seq(folder.events) + 1
    envelopes = [
        Envelope(
            seq=first + number,
            ts=ts,
            session_id=folder.id,
            run_id=run_id,
            event=event,
            step_id=_STEP if isinstance(event, (StepStarted, FilesChanged, StepCompleted)) else None,
            attempt=1 if isinstance(event, (StepStarted, FilesChanged, StepCompleted)) else None,
        )
        for number, event in enumerate(_events(folder, undone, request=request, cwd=cwd, plan_id=run_id))
    ]
    log = FileLog(folder.events)
    try:
        log.append(b"".join(map(to_line, envelopes)))
    finally:
        log.close()
    refresh_session(folder)
    return run_id


def summary_of(undone: Undone) -> str:
    """Return what was done in a few lines."""
    lines = [f"Restored {change.path}" + _how(change.status) for change in undone.restored]
    lines += [f"{name} is already as it was" for name in undone.unchanged]
    lines += [f"Not restored: {problem}" for problem in undone.refused]
    return "\n".join(lines) or "Nothing to undo."


def _how(status: str) -> str:
    return {"added": " (it had been deleted)", "deleted": " (it had been made; it is gone)"}.get(status, "")


def _events(folder: SessionFolder, undone: Undone, *, request: str, cwd: Path, plan_id: str) -> list[Event]:
    code = exit_codes.FAILED if undone.refused else exit_codes.OK
    step = PlanStep(id=_STEP, title="Restore files", instruction="Restore files", type="tool")
    ending = StepCompleted(status="error" if code else "ok", summary=summary_of(undone))
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


_OF = "Undo the file changes of "
_SESSION = "this session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOrder:
    """Runs whose changes stand, and undos that can be taken back themselves; the newest last."""

    standing: tuple[str, ...] = ()
    taken_back: tuple[str, ...] = ()


def undo_request(run: str | None, step: str | None) -> str:
    """Return what an undo is called in the log."""
    return _OF + (f"step {step}" if step else f"run {run}" if run else _SESSION)


def undo_order(folder: SessionFolder) -> UndoOrder:
    """Return in which order a session's changes can be taken back and made again."""
    changed = {made.run_id for made in made_in(read_events(folder.events))}
    standing: list[str] = []
    taken_back: list[str] = []
    for run in read_every_run(folder).runs:
        if run.run_id not in changed:
            continue
        if not run.run_id.startswith(UNDO):
            standing.append(run.run_id)
            continue
        what = run.user.removeprefix(_OF)
        before, after = (taken_back, standing) if what.removeprefix("run ") in taken_back else (standing, taken_back)
        # What was taken back only in part can be tried again.
        if run.subtype == "success":
            before[:] = [name for name in before if what not in (_SESSION, f"run {name}")]
        after.append(run.run_id)
    return UndoOrder(standing=tuple(standing), taken_back=tuple(taken_back))


_WHOLE = 1 << 40


def net_diff(span: Span, blobs: BlobStore) -> str:
    """Return the effect of all changes of a file together; where a content is gone, the recorded diffs instead."""
    before = _content(span.before, span, blobs)
    after = _content(span.after, span, blobs)
    is_complete = (before is not None or span.before is None) and (after is not None or span.after is None)
    if span.is_known and is_complete:
        return change_of(span.shown, as_text(before), as_text(after), max_chars=_WHOLE).diff
    return "".join(made.change.diff for made in span.changes)


def step_diffs(made: list[Made]) -> Iterator[str]:
    """Yield the recorded diffs change by change, each under the step that made it."""
    for one in made:
        yield f"# {one.run_id} {one.step_id}: {one.change.path} ({one.change.status})\n{one.change.diff}"


def _content(name: str | None, span: Span, blobs: BlobStore) -> bytes | None:
    """Return the content of a hash: a kept copy, or the file itself while it still holds that."""
    if name is None:
        return None
    kept = blobs.read(name)
    if kept is not None:
        return kept
    try:
        with target(lambda: spot_of(span), makes_folders=False) as file:
            now = file.content()
    except ToolError:
        return None
    return now.data if now is not None and hash_of(now.data) == name else None
