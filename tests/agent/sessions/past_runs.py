"""Writes real session folders and logs without running anything."""

import os
from collections.abc import Sequence
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
    StepCompleted,
    StepCounts,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.sessions.log.event_log import FileLog, last_seq
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.session_summary import refresh_session
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage

STEP_EVENTS = (StepStarted, StepCompleted, ToolStarted, ToolCompleted, FilesChanged)


def run_start(cwd: str = "/project", request: str = "count the lines") -> list[Event]:
    """Return the first events of a run."""
    started = RunStarted(
        model="script:x",
        planner_model="script:x",
        cwd=cwd,
        workspace=cwd,
        backend="sandbox",
        approval_mode="ask",
        tools=("run_command",),
    )
    return [started, MessageAdded(role="user", content=request)]


def plan_updated(*ids: str) -> PlanUpdated:
    """Return a plan in which each step depends on the one before."""
    depends_on: tuple[str, ...] = ()
    steps = []
    for step_id in ids:
        steps.append(
            PlanStep(id=step_id, title=f"Title of {step_id}", instruction=f"Do {step_id}", depends_on=depends_on)
        )
        depends_on = (step_id,)
    return PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=tuple(steps))


def command_events(command: str, output: str, exit_code: int = 0, tool_id: str = "c1") -> list[Event]:
    """Return the start and the end of one command."""
    status = "ok" if exit_code == 0 else "error"
    return [
        ToolStarted(tool_id=tool_id, name="run_command", input={"command": command}),
        ToolCompleted(tool_id=tool_id, name="run_command", status=status, exit_code=exit_code, output=output),
    ]


def run_completed(answer: str = "three lines", *, cost_usd: float | None = 0.25) -> RunCompleted:
    """Return the end of a successful run."""
    usage = Usage(input_tokens=100, output_tokens=10, requests=2, cost_usd=cost_usd)
    return RunCompleted(
        subtype="success",
        is_error=False,
        exit_code=0,
        result=answer,
        steps=StepCounts(ok=1),
        duration_ms=1500,
        total_cost_usd=cost_usd,
        usage=usage,
    )


def completed_run(request: str = "count the lines", answer: str = "three lines", cwd: str = "/project") -> list[Event]:
    """Return a complete run of one step with one command."""
    return [
        *run_start(cwd, request),
        plan_updated("s1"),
        StepStarted(title="Title of s1"),
        *command_events("wc -l < a.txt", "3"),
        StepCompleted(status="ok", summary=answer, evidence=("run_command exit 0",), elapsed_ms=900),
        run_completed(answer),
    ]


def write_run(
    data: Path,
    session: str,
    events: Sequence[Event],
    *,
    run: str = "run-20250101120000-aaaaaa",
    step: str = "s1",
    ts: str = "2025-01-01T12:00:00.000Z",
    mtime: float | None = None,
    has_summary: bool = True,
) -> SessionFolder:
    """Append a run to a session and set the log's modification time to `mtime`."""
    data.mkdir(exist_ok=True)
    folder = SessionStore(data).open(session)
    first = last_seq(folder.events) + 1
    log = FileLog(folder.events)
    log.append(b"".join(to_line(_envelope(folder.id, run, step, ts, first + n, e)) for n, e in enumerate(events)))
    log.close()
    if mtime is not None:
        os.utime(folder.events, (mtime, mtime))
    if has_summary:
        refresh_session(folder)
        if mtime is not None:
            os.utime(folder.summary, (mtime, mtime))
    return folder


def _envelope(session: str, run: str, step: str, ts: str, seq: int, event: Event) -> Envelope:
    is_step_event = isinstance(event, STEP_EVENTS)
    return Envelope(
        seq=seq,
        ts=ts,
        session_id=session,
        run_id=run,
        event=event,
        step_id=step if is_step_event else None,
        attempt=1 if is_step_event else None,
    )
