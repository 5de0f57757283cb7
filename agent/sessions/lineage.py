"""Chains of runs: each goes on with the one before it, and together they do one request."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.protocol.events import RunStarted
from agent.sessions.log.log_index import read_lines
from agent.vocabulary.errors import InputError


def chain_of(log: Path, run_id: str) -> tuple[str, ...]:
    """Return all runs of the chain that a run belongs to, the oldest first."""
    parents: dict[str, str | None] = {}
    for line in read_lines(log, only=RunStarted.type):
        if (envelope := line.envelope()) and isinstance(envelope.event, RunStarted):
            parents[line.run_id] = envelope.event.resumes
    if run_id not in parents:
        raise InputError(f"there is no run {run_id!r} in this session", "`agent sessions show` lists its runs")
    return in_chain(parents, run_id)


def in_chain(parents: Mapping[str, str | None], run_id: str) -> tuple[str, ...]:
    """Return the runs that do the same request, in the order in which they are given."""
    first = _first(parents, run_id)
    return tuple(run for run in parents if _first(parents, run) == first)


def newest(parents: Mapping[str, str | None], runs: Iterable[str]) -> list[str]:
    """Return of each chain only the run that nobody went on with."""
    gone_on_with = set(parents.values())
    return [run for run in runs if run not in gone_on_with]


def _first(parents: Mapping[str, str | None], run_id: str) -> str:
    seen = {run_id}
    while (before := parents.get(run_id)) and before not in seen:
        seen.add(before)
        run_id = before
    return run_id
