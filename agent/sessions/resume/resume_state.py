"""Folds the log of a chain of runs into what the next one needs to go on."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from agent.protocol.events import MessageSaid, PlanMade, RunCompleted, RunStarted, StepCompleted, StepStarted
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.resume.step_history import EffectOf, unfinished_call, unfinished_task
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.plan import ANSWER, STREAMING, SURPRISE, PlanStep
from agent.vocabulary.unfinished import UnfinishedRun, UnfinishedStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode


def run_chain(log: Path, run_id: str) -> tuple[str, ...]:
    """Return all runs of the chain that a run belongs to, the oldest first."""
    parents: dict[str, str | None] = {}
    for line in read_lines(log, only=RunStarted.type):
        if (envelope := line.envelope()) and isinstance(envelope.event, RunStarted):
            parents[line.run_id] = envelope.event.resumes
    if run_id not in parents:
        raise InputError(f"there is no run {run_id!r} in this session", "`agent sessions show` lists its runs")
    return runs_in_chain(parents, run_id)


def runs_in_chain(parents: Mapping[str, str | None], run_id: str) -> tuple[str, ...]:
    """Return the runs that do the same request, in the order in which they are given."""
    first = _chain_root(parents, run_id)
    return tuple(run for run in parents if _chain_root(parents, run) == first)


def latest_of_chains(parents: Mapping[str, str | None], runs: Iterable[str]) -> list[str]:
    """Return of each chain only the run that nobody went on with."""
    gone_on_with = set(parents.values())
    return [run for run in runs if run not in gone_on_with]


def _chain_root(parents: Mapping[str, str | None], run_id: str) -> str:
    seen = {run_id}
    while (before := parents.get(run_id)) and before not in seen:
        seen.add(before)
        run_id = before
    return run_id


# How a step can have ended without having come to an end of its own.
_INTERRUPTED = frozenset({"", "cancelled", "timeout"})
_REASON = re.compile(rb'"reason": ("(?:[^"\\]|\\.)*")')


class RunIsFinished(UsageError):
    """There is nothing to go on with."""


def unfinished_run(log: Path, run_id: str, effect_of: EffectOf) -> UnfinishedRun:
    """Return what the chain of a run has come to; `effect_of` says what calls of a tool do."""
    chain = run_chain(log, run_id)
    told = _ChainState()
    for line in read_lines(log):
        if line.run_id in chain:
            told.apply(line)
    for run, ending in told.endings.items():
        if ending == "success":
            hint = 'say what to do next: agent run --continue "your task"'
            raise RunIsFinished(f"run {run} finished successfully; there is nothing to resume", hint)
    plan = told.plan_steps()
    return UnfinishedRun(
        run_id=chain[-1],
        lineage=chain[0],
        request=told.messages.get("user", ""),
        context=told.messages.get("context", ""),
        schema=told.messages.get("schema", ""),
        model=told.model or "",
        plan=plan,
        is_plan_complete=bool(plan) and told.plan_reasons[-1:] != [STREAMING],
        is_plan_given="plan" in told.messages,
        steps={step.id: begun for step in plan if (begun := told.unfinished_step(step, effect_of))},
        replans=sum(reason.startswith(SURPRISE) for reason in told.plan_reasons),
        clarifications=sum(reason.startswith(ANSWER) for reason in told.plan_reasons),
        answer=told.answer,
    )


@dataclass(slots=True)
class _StepLog:
    """The lines of a step that has no result yet, and how it ended last."""

    lines: list[LogLine] = field(default_factory=list)
    status: str = ""


class _ChainState:
    """What a chain of runs has told so far; only what may be needed is read whole."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.plan_reasons: list[str] = []
        self.endings: dict[str, str] = {}
        self.model: str | None = None
        self.answer = ""
        self._plan: LogLine | None = None
        self._steps: dict[str, _StepLog] = {}

    def apply(self, line: LogLine) -> None:
        if line.step_id is not None:
            self._apply_to_step(line, self._steps.setdefault(line.step_id, _StepLog()))
        elif line.type == PlanMade.type:
            self._plan = line
            self.plan_reasons.append(_plan_reason(line))
        elif line.type in (RunStarted.type, MessageSaid.type, RunCompleted.type) and (envelope := line.envelope()):
            match envelope.event:
                case RunStarted(model=model) if self.model is None:
                    self.model = model
                case MessageSaid(role="assistant", content=content):
                    self.answer = content
                case MessageSaid(role=role, content=content):
                    # Later runs of a chain only repeat the request.
                    self.messages.setdefault(role, content)
                case RunCompleted(subtype=subtype):
                    self.endings[line.run_id] = subtype
                case _:
                    pass

    def plan_steps(self) -> tuple[PlanStep, ...]:
        """Return the newest plan; before one was announced it is the one that was given, if there was one."""
        made = self._plan.envelope() if self._plan else None
        if made and isinstance(made.event, PlanMade):
            return made.event.steps
        try:
            return tuple(decode(PlanStep, step, extra="ignore") for step in json.loads(self.messages.get("plan", "[]")))
        except ValueError:
            return ()

    def unfinished_step(self, step: PlanStep, effect_of: EffectOf) -> UnfinishedStep | None:
        """Return what a step had begun, None when it starts afresh."""
        kept = self._steps.get(step.id, _StepLog())
        events = [envelope for line in kept.lines if (envelope := line.envelope())]
        if step.type == "task":
            return unfinished_task(events, effect_of)
        if step.type == "tool" and kept.status in _INTERRUPTED:
            return unfinished_call(events, effect_of, step.id)
        return None

    def _apply_to_step(self, line: LogLine, step: _StepLog) -> None:
        step.lines.append(line)
        if line.type not in (StepStarted.type, StepCompleted.type) or not (envelope := line.envelope()):
            return
        match envelope.event:
            case StepStarted(cache=cache):
                step.status = ""
                if cache != "hit":
                    # What was answered before is no answer to what comes now.
                    self.answer = ""
                if cache != "resumed":
                    step.lines = [line]
            case StepCompleted(status=status, key=key):
                step.status = status
                if key is not None:
                    # Its result is on the shelf.
                    step.lines = []
            case _:
                pass


def _plan_reason(line: LogLine) -> str:
    """Return why a plan was announced, without reading all of it: it may be long, and told many times."""
    if found := _REASON.search(line.raw):
        return str(json.loads(found[1]))
    return ""
