"""Loads a recorded run for replay: its request, its plan and its cassette."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.config.settings import PlanningMode
from agent.protocol.commands import ReplayedRun, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, PlanUpdated, RunStarted, StepStarted
from agent.sessions.log.log_index import run_events
from agent.sessions.views.listing import RunRef
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import FILE, LEAD, PLAN_TOOL, Plan
from tooling.contract.fast_dataclass import dataclass

RECORD_HINT = "record a run with `agent run --record FILE`; `agent run --replay FILE` replays any cassette"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The request to submit again, the cassette with the model's replies, and the planning mode."""

    submit: Submit
    cassette: Path
    planning: PlanningMode


def load_replay(run: RunRef) -> Replay:
    """Load a recorded run. Raises InputError if it was not recorded, or resumes another run."""
    events = run_events(run.folder.events, run.run_id)
    started = next((e.event for e in events if isinstance(e.event, RunStarted)), None)
    if started is None or started.cassette is None:
        raise InputError(f"run {run.run_id} was not recorded", RECORD_HINT)
    if started.resumes:
        raise InputError(resumed_message(run.run_id, started.resumes), RECORD_HINT)
    cassette = Path(started.cassette)
    if not cassette.is_file():
        raise InputError(f"the cassette of run {run.run_id} is missing: {cassette}", RECORD_HINT)
    submit = replace(_build_submit(events), replays=ReplayedRun(log=run.folder.events, run_id=run.run_id))
    return Replay(submit=submit, cassette=cassette, planning=_planning(started, events))


def resumed_message(run_id: str, resumes: str) -> str:
    return f"run {run_id} resumes {resumes}; only a run recorded from its start can be replayed"


def _planning(started: RunStarted, events: Sequence[Envelope]) -> PlanningMode:
    """Return the planning mode of the run, regardless of the current setting."""
    if not any(envelope.step_id == LEAD for envelope in events):
        return "always"
    return "auto" if PLAN_TOOL in started.tools else "never"


def _build_submit(events: Sequence[Envelope]) -> Submit:
    messages: dict[str, str] = {}
    for envelope in events:
        if isinstance(envelope.event, MessageAdded) and envelope.step_id is None:
            messages.setdefault(envelope.event.role, envelope.event.content)
    images = (e.event.images for e in events if isinstance(e.event, MessageAdded) and e.event.images and not e.step_id)
    plans = [e.event for e in events if isinstance(e.event, PlanUpdated)]
    has_started_step = any(isinstance(e.event, StepStarted) for e in events)
    return Submit(
        prompt=messages.get("user", ""),
        context=messages.get("context", ""),
        schema=messages.get("schema", ""),
        images=next(images, ()),
        plan=Plan(steps=plans[0].steps, reason=FILE) if plans and plans[0].reason == FILE else None,
        plan_only=bool(plans) and not has_started_step,
    )
