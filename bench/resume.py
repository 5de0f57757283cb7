"""Measure `agent resume` of a session with 10,000 events against a new run."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from agent.execution.graph.step_cache import KeySource, cache_key
from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    CallMade,
    Event,
    MessageAdded,
    PlanUpdated,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.sessions.step_results import StepResultStore, encode_result
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorResponse, StepOutput
from bench.measure import BenchResult, format_ms, sample_interleaved
from bench.program import AGENT, BenchError, Home, ProcessRun
from bench.replies import DIRECT_ANSWER, DONE
from tests.provider.threaded import ThreadedProvider

EVENTS = 10_000
STEPS = 49
OUTPUT = "a line of output that a command wrote\n" * 20
ROUNDS = 9
RUN, MODEL, REQUEST = "run-20250101120000-abcdef", "openai/bench-model", "do what the benchmark asks"


def resume() -> list[BenchResult]:
    """Measure the time to the first request of `agent resume` against `agent run`."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DONE) as provider:
        home = Home(Path(name), provider, planning="always")
        saved = Path(name, "saved")
        folder = SessionStore(_make_data_dir(Path(name))).open("long")
        count = write_interrupted_session(folder)
        folder.root.rename(saved)

        def resumed() -> float:
            shutil.rmtree(folder.root, ignore_errors=True)
            shutil.copytree(saved, folder.root)
            return _check_requests(home.run([AGENT, "resume", "long"])).until_first_request

        def started_anew() -> float:
            provider.reply(DIRECT_ANSWER)
            return home.agent_run().until_first_request

        samples, baselines = sample_interleaved(ROUNDS, resumed, started_anew)
    over = median(samples) - median(baselines)
    times = f"{format_ms(median(samples))} against {format_ms(median(baselines))}"
    detail = f"{times}, {count} events, {ROUNDS} interleaved runs of each"
    what = "start → first request, `agent resume` of 10,000 events, over `agent run`"
    return [BenchResult(what=what, measured=over * 1000, limit=300, unit="ms", detail=detail)]


def _check_requests(run: ProcessRun) -> ProcessRun:
    # The interrupted step and the composer; the other steps come from the cache.
    if len(run.requests) != 2:
        raise BenchError(f"a resumed run made {len(run.requests)} requests instead of 2")
    return run


def _make_data_dir(home: Path) -> Path:
    data = home / "data"
    data.mkdir(mode=0o700)
    return data


def write_interrupted_session(folder: SessionFolder, *, events: int = EVENTS) -> int:
    """Write a session whose only run was killed in its last step, and return the number of its events."""
    steps = tuple(PlanStep(id=f"s{n}", title=f"Step {n}", instruction=f"Do part {n}") for n in range(STEPS + 1))
    results = StepResultStore(folder.steps)
    folder.steps.mkdir(mode=0o700)
    turns = (events // STEPS - 3) // 3
    logged: list[tuple[str | None, Event]] = [*_first_events(folder, steps)]
    for step in steps[:-1]:
        key = cache_key(KeySource(lineage=RUN, model=MODEL, request=REQUEST), step, ExecutorProfile(), ())
        response = ExecutorResponse(
            task_id=step.id, status="ok", summary="Done.", outputs=(StepOutput(type="text", content="Done."),)
        )
        results.path_for(key).write_bytes(encode_result(key, response))
        logged += [(step.id, event) for event in _step_events(step, turns)]
        logged.append((step.id, StepCompleted(status="ok", summary="Done.", key=key)))
    logged += [(steps[-1].id, event) for event in _step_events(steps[-1], 10)]
    lines = [to_line(_envelope(folder, number, *event)) for number, event in enumerate(logged, 1)]
    folder.events.write_bytes(b"".join(lines))
    return len(lines)


def _first_events(folder: SessionFolder, steps: tuple[PlanStep, ...]) -> Iterator[tuple[None, Event]]:
    started = RunStarted(
        model=MODEL,
        planner_model=MODEL,
        cwd=str(folder.workspace),
        workspace=str(folder.workspace),
        backend="sandbox",
        approval_mode="ask",
        tools=(),
    )
    yield None, started
    yield None, MessageAdded(role="user", content=REQUEST)
    yield None, PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=steps)


def _step_events(step: PlanStep, turns: int) -> Iterator[Event]:
    yield StepStarted(title=step.title)
    for turn in range(turns):
        call = CallMade(id=f"c{turn}", name="run_command", input={"command": f"make part-{turn}"})
        yield MessageAdded(role="assistant", content="", tool_calls=(call,))
        yield ToolStarted(tool_id=call.id, name=call.name, input=call.input)
        yield ToolCompleted(tool_id=call.id, name=call.name, status="ok", exit_code=0, output=OUTPUT)


def _envelope(folder: SessionFolder, seq: int, step: str | None, event: Event) -> Envelope:
    return Envelope(
        seq=seq,
        ts="2025-01-01T12:00:00.000Z",
        session_id=folder.id,
        run_id=RUN,
        event=event,
        step_id=step,
        attempt=1 if step else None,
    )
