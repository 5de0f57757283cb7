"""An undo in the session's log: a run of one step, so that every reader of the log understands it."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

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
from agent.sessions.changes.undo import Undone
from agent.sessions.log.event_log import FileLog, last_seq
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import refresh_session
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep

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
