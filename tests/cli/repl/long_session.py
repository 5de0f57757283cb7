"""Plays half an hour of runs through the real TUI in a few seconds, with an accelerated clock."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from agent.config.user_dirs import os_environ
from agent.protocol.commands import ResolveApproval
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    BudgetSpent,
    Event,
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage
from cli.repl.commands.builtin import COMMANDS
from cli.repl.repl import Repl
from cli.repl.state import ReplState
from cli.repl.ui.tui import Tui
from cli.screen.colors import Paint
from tooling.contract.result import FileChange

RUNS, STEPS, CALLS = 10, 4, 15
APPROVALS = RUNS * STEPS
SPEED = 100
_STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="sandbox", approval_mode="ask", tools=()
)
_PIECES = ("Words of the ", "answer that ", "come one by one.\n\n")


def events_of(run: int) -> Iterator[tuple[Event, str | None]]:
    """Yield the events of one run with concurrent steps."""
    steps = tuple(PlanStep(id=f"r{run}s{n}", title=f"Step {n} of run {run}", instruction="x") for n in range(STEPS))
    yield _STARTED, None
    yield PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=steps), None
    for step in steps:
        yield StepStarted(title=step.title), step.id
    for call in range(CALLS):
        for step in steps:
            yield from _call(f"{step.id}c{call}", step.id, asks=call == CALLS // 2)
    for step in steps:
        yield StepCompleted(status="ok", summary="", elapsed_ms=1000, usage=Usage(output_tokens=100)), step.id
    for piece in _PIECES:
        yield MessageAdded(role="assistant", content=piece, delta=True), None
    yield BudgetSpent(usage=Usage(output_tokens=1000), cost_usd=0.1, max_tokens=10_000, max_budget_usd=None), None
    answer = "".join(_PIECES) + f"The end of run {run}."
    yield RunCompleted(subtype="success", is_error=False, exit_code=0, result=answer, duration_ms=180_000), None


def _call(name: str, step: str, *, asks: bool) -> Iterator[tuple[Event, str | None]]:
    yield MessageAdded(role="assistant", content=f"thinking of {name} ", delta=True), step
    yield ToolStarted(tool_id=name, name="run_command", input={"command": f"make {name}"}), step
    if asks:
        yield (
            ApprovalRequested(
                approval_id=f"a-{name}", command=f"make {name}", cwd="/w", reason="r", rule="make", tool="run_command"
            ),
            step,
        )
    output = "\n".join(f"{name} line {number}" for number in range(20))
    yield ToolCompleted(tool_id=name, name="run_command", status="ok", exit_code=0, output=output), step
    if asks:
        change = FileChange(path=f"{name}.py", status="modified", added_lines=1, deleted_lines=0, diff=f"+{name}\n")
        yield FilesChanged(changes=(change,)), step


class _App:
    """Collects the answers typed at the keyboard."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[ResolveApproval] = asyncio.Queue()

    def send(self, command: ResolveApproval) -> bool:
        self.answers.put_nowait(command)
        return True


async def _play(app: _App, run: int) -> AsyncIterator[tuple[Event, str | None]]:
    """Yield the events of a run; wait for an answer after each approval request."""
    for event, step in events_of(run):
        yield event, step
        if isinstance(event, ApprovalRequested):
            answer = await app.answers.get()
            assert answer.approval_id == event.approval_id, (answer, event)
            yield ApprovalResolved(approval_id=event.approval_id, decision=answer.decision, by="person"), step


async def _run() -> None:
    state = ReplState(environ=os_environ(), cwd=Path.cwd())
    repl = Repl(state=state, paint=Paint(has_color=False), commands=COMMANDS, ui=Tui)
    ui = repl.ui
    assert isinstance(ui, Tui)
    app = _App()
    repl.queue._app = app  # type: ignore[assignment]
    ui.cards._now = lambda: time.monotonic() * SPEED
    showing = asyncio.ensure_future(ui.run())
    for run in range(RUNS):
        ui.echo(f"> request {run}")
        async for event, step in _play(app, run):
            ui.on_event(
                Envelope(seq=1, ts="", session_id="s", run_id=f"run-{run}", event=event, step_id=step, attempt=1)
            )
            await asyncio.sleep(0.001)
        ui.on_request_ended()
    repl.exit()
    await showing


if __name__ == "__main__":
    asyncio.run(_run())
