"""Child process of the benchmark: feed the real prompt UI with events at a fixed rate and save its CPU usage."""

import asyncio
import sys
import time
from pathlib import Path

from agent.config.user_dirs import os_environ
from agent.protocol.envelope import Envelope
from agent.protocol.events import Event, MessageAdded, PlanUpdated, RunStarted, StepStarted
from agent.vocabulary.plan import PlanStep
from cli.repl.commands.builtin import COMMANDS
from cli.repl.repl import Repl
from cli.repl.state import ReplState
from cli.repl.ui.tui import Tui
from cli.screen.colors import Paint

STEPS = 8
# Every fragment is one token; a line of the stream is about a sentence long.
WORDS = ("word ",) * 15 + ("end.\n",)
_STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="sandbox", approval_mode="ask", tools=()
)


def main() -> None:
    """Draw for some seconds at a rate of tokens per second and step; write the CPU share to a file."""
    seconds, rate, result = float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    result.write_text(str(asyncio.run(_draw(seconds, rate))))


async def _draw(seconds: float, rate: int) -> float:
    state = ReplState(environ=os_environ(), cwd=Path.cwd())
    repl = Repl(state=state, paint=Paint(has_color=True), commands=COMMANDS, ui=Tui)
    ui_task = asyncio.ensure_future(repl.ui.run())
    steps = tuple(PlanStep(id=f"s{n}", title=f"Step {n}", instruction="x") for n in range(STEPS))
    for event in (_STARTED, PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=steps)):
        repl.ui.on_event(_envelope(event))
    for step in steps:
        repl.ui.on_event(_envelope(StepStarted(title=step.title), step.id))
    started, used = time.monotonic(), time.process_time()
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
        message = MessageAdded(role="assistant", content=WORDS[number % len(WORDS)], delta=True)
        for step in steps:
            repl.ui.on_event(_envelope(message, step.id))
    share = (time.process_time() - used) / (time.monotonic() - started)
    repl.exit()
    await ui_task
    return share


def _envelope(event: Event, step: str | None = None) -> Envelope:
    return Envelope(seq=1, ts="", session_id="s", run_id="r", event=event, step_id=step, attempt=1)


if __name__ == "__main__":
    main()
