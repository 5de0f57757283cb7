"""The agent's to-do list, read from the event log, so that it survives the run and a crash."""

from collections.abc import Iterable
from pathlib import Path

from agent.protocol.envelope import Envelope
from agent.protocol.events import TodoChanged
from agent.sessions.log.log_index import read_lines, read_run_chain
from agent.vocabulary.plan import LEAD
from tooling.contract.result import TaskItem


def read_tasks(log: Path, step_id: str = LEAD, resumes: str | None = None) -> tuple[TaskItem, ...]:
    """Return the last list of a step: the lead's of the whole session, or another step's of the resumed run."""
    if not log.exists():
        return ()
    if step_id == LEAD:
        lines = [line for line in read_lines(log) if line.type == TodoChanged.type and line.step_id == LEAD]
        return _last(filter(None, (line.envelope() for line in lines[-1:])))
    if resumes is None:
        return ()
    events = (envelope for run in read_run_chain(log, resumes) for envelope in run)
    return _last(envelope for envelope in events if envelope.step_id == step_id)


def _last(envelopes: Iterable[Envelope]) -> tuple[TaskItem, ...]:
    found: tuple[TaskItem, ...] = ()
    for envelope in envelopes:
        if isinstance(envelope.event, TodoChanged):
            found = envelope.event.items
    return found
