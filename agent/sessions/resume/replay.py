"""A recorded run as it can be played again: its request with all that came with it, its plan, its cassette."""

from collections.abc import Sequence
from pathlib import Path

from agent.protocol.commands import Submit
from agent.protocol.events import Envelope, MessageSaid, PlanMade, RunStarted, StepStarted
from agent.sessions.log.log_index import run_events
from agent.sessions.views.listing import RunRef
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import FILE, Plan
from tooling.contract.fast_dataclass import dataclass

_HINT = "record a run with `agent run --record FILE`; `agent run --replay FILE` plays any cassette"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What to ask again, and the cassette that answers."""

    submit: Submit
    cassette: Path


def load_replay(found: RunRef) -> Replay:
    """Return how to play a run again; one that was not recorded from its beginning is refused."""
    events = run_events(found.folder.events, found.run_id)
    started = next((e.event for e in events if isinstance(e.event, RunStarted)), None)
    if started is None or started.cassette is None:
        raise InputError(f"run {found.run_id} was not recorded", _HINT)
    if started.resumes:
        problem = (
            f"run {found.run_id} goes on with {started.resumes}: only a run from its beginning can be played again"
        )
        raise InputError(problem, _HINT)
    cassette = Path(started.cassette)
    if not cassette.is_file():
        raise InputError(f"the cassette of run {found.run_id} is not there any more: {cassette}", _HINT)
    return Replay(submit=_build_submit(events), cassette=cassette)


def _build_submit(events: Sequence[Envelope]) -> Submit:
    said: dict[str, str] = {}
    for envelope in events:
        if isinstance(envelope.event, MessageSaid) and envelope.step_id is None:
            said.setdefault(envelope.event.role, envelope.event.content)
    plans = [e.event for e in events if isinstance(e.event, PlanMade)]
    has_worked = any(isinstance(e.event, StepStarted) for e in events)
    return Submit(
        prompt=said.get("user", ""),
        context=said.get("context", ""),
        schema=said.get("schema", ""),
        plan=Plan(steps=plans[0].steps, reason=FILE) if plans and plans[0].reason == FILE else None,
        plan_only=bool(plans) and not has_worked,
    )
