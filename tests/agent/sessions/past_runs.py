"""Sessions that never ran: real folders and logs, made from the events a run would have left."""

import os
from collections.abc import Sequence
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
    """Return how every run begins."""
    started = RunStarted(
        model="script:x",
        planner_model="script:x",
        cwd=cwd,
        workspace=cwd,
        backend="sandbox",
        approval_mode="ask",
        tools=("run_command",),
    )
    return [started, MessageSaid(role="user", content=request)]


def plan_made(*ids: str) -> PlanMade:
    """Return a plan whose steps follow one another."""
    after: tuple[str, ...] = ()
    steps = []
    for name in ids:
        steps.append(PlanStep(id=name, title=f"Title of {name}", instruction=f"Do {name}", depends_on=after))
        after = (name,)
    return PlanMade(plan_id="p", revision=1, hash="h", reason="request", steps=tuple(steps))


def command_events(command: str, output: str, exit_code: int = 0, tool_id: str = "c1") -> list[Event]:
    """Return one command and what came of it."""
    status = "ok" if exit_code == 0 else "error"
    return [
        ToolStarted(tool_id=tool_id, name="run_command", input={"command": command}),
        ToolCompleted(tool_id=tool_id, name="run_command", status=status, exit_code=exit_code, output=output),
    ]


def run_completed(answer: str = "three lines", *, cost_usd: float | None = 0.25) -> RunCompleted:
    """Return how a run that went well ends."""
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
    """Return a run of one step with one command."""
    return [
        *run_start(cwd, request),
        plan_made("s1"),
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
    is_summed_up: bool = True,
) -> SessionFolder:
    """Append a run to a session as if it had happened, its log last written at `mtime`."""
    data.mkdir(exist_ok=True)
    folder = SessionStore(data).open(session)
    first = last_seq(folder.events) + 1
    log = FileLog(folder.events)
    log.append(b"".join(to_line(_envelope(folder.id, run, step, ts, first + n, e)) for n, e in enumerate(events)))
    log.close()
    if mtime is not None:
        os.utime(folder.events, (mtime, mtime))
    if is_summed_up:
        refresh_session(folder)
        if mtime is not None:
            os.utime(folder.summary, (mtime, mtime))
    return folder


def _envelope(session: str, run: str, step: str, ts: str, seq: int, event: Event) -> Envelope:
    is_inside = isinstance(event, STEP_EVENTS)
    return Envelope(
        seq=seq,
        ts=ts,
        session_id=session,
        run_id=run,
        event=event,
        step_id=step if is_inside else None,
        attempt=1 if is_inside else None,
    )
