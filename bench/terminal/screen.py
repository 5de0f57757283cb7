"""Measure the cost of drawing: one frame of a busy run, and a streamed answer, against writing the finished text."""

import os
import time
from collections.abc import Callable

from agent.protocol.envelope import Envelope
from agent.protocol.events import Event, MessageAdded, PlanUpdated, RunStarted, StepStarted, ToolStarted
from agent.vocabulary.plan import LEAD, PlanStep
from bench.measure import BenchResult, ratio, sample_interleaved
from cli.screen.colors import Paint
from cli.screen.live_area import LiveArea
from cli.screen.live_lines import LiveLines
from cli.screen.markdown import render_markdown
from cli.screen.transcript import Transcript

ROUNDS = 20
FRAMES = 200
STEPS = 8
WORDS = 1000
_COLUMNS, _ROWS = 120, 40
_STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="sandbox", approval_mode="ask", tools=()
)
# Paragraphs of a hundred words: each is rendered once it is complete.
_ANSWER = tuple(f"word{number} " if number % 100 else f"word{number}.\n\n" for number in range(1, WORDS + 1))


def frames() -> list[BenchResult]:
    """Measure drawing a frame of eight running steps, and streaming a thousand words."""
    paint = Paint(has_color=True)
    sink = os.open(os.devnull, os.O_WRONLY)
    area, lines = _busy_area(paint), LiveLines()
    shown = lines.draw(area.lines(_COLUMNS, _ROWS)).encode()
    answer = [word.encode() for word in _ANSWER]

    def frame() -> None:
        for _ in range(FRAMES):
            os.write(sink, lines.update(area.lines(_COLUMNS, _ROWS)).encode())

    def finished_frame() -> None:
        for _ in range(FRAMES):
            os.write(sink, shown)

    def stream() -> None:
        transcript = Transcript(
            write=lambda text: _write(sink, text),
            width=lambda: _COLUMNS,
            paint=paint,
            markdown=lambda text: render_markdown(text, width=_COLUMNS, paint=paint),
        )
        transcript.on_event(_envelope(_STARTED))
        for word in _ANSWER:
            transcript.on_event(_envelope(MessageAdded(role="assistant", content=word, delta=True), LEAD))

    def finished_words() -> None:
        for word in answer:
            os.write(sink, word)

    try:
        drawn, floor = sample_interleaved(ROUNDS, lambda: _cpu_s(frame), lambda: _cpu_s(finished_frame))
        streamed, words = sample_interleaved(ROUNDS, lambda: _cpu_s(stream), lambda: _cpu_s(finished_words))
    finally:
        os.close(sink)
    return [
        ratio(f"drawing {FRAMES} frames of {STEPS} steps, against writing them", 500, drawn, floor),
        ratio(f"streaming {WORDS:,} words, against writing them", 80, streamed, words),
    ]


def _busy_area(paint: Paint) -> LiveArea:
    area = LiveArea(paint=paint)
    steps = tuple(PlanStep(id=f"s{n}", title=f"Look at part {n}", instruction="x") for n in range(STEPS))
    area.on_event(_envelope(_STARTED))
    area.on_event(_envelope(PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=steps)))
    for step in steps:
        area.on_event(_envelope(StepStarted(title=step.title), step.id))
        call = ToolStarted(tool_id="1", name="run_command", input={"command": "make test"})
        area.on_event(_envelope(call, step.id))
    return area


def _cpu_s(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _write(sink: int, text: str) -> None:
    os.write(sink, text.encode())


def _envelope(event: Event, step: str | None = None) -> Envelope:
    return Envelope(seq=1, ts="", session_id="s", run_id="r", event=event, step_id=step, attempt=1)
