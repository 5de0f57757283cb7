"""Rebuilds from a session's log the state that resuming a run needs."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from agent.protocol.events import (
    EffectRecorded,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
)
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.resume.conversation import resumed_conversation
from agent.sessions.resume.step_history import EffectOf, unfinished_call, unfinished_task
from agent.vocabulary.effects import EffectFold
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.message import ToolCall
from agent.vocabulary.plan import ANSWER, LEAD, PLAN_TOOL, RESUMED, STREAMING, SURPRISE, PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.unfinished import UnfinishedRun, UnfinishedStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.json_codec import decode, encode
from tooling.contract.lazy_pattern import lazy_pattern

# Statuses of a step that was stopped externally; "" means that the log has no end for it.
_INTERRUPTED = frozenset({"", "cancelled", "timeout"})
_RESULT_STEP = lazy_pattern(r'^<result step="([^"]+)"', re.MULTILINE)
_PLAN_FIELDS = ("id", "title", "instruction", "depends_on", "writes", "context", "verify")
_REASON = lazy_pattern(rb'"reason": ("(?:[^"\\]|\\.)*")')


def run_chain(log: Path, run_id: str) -> tuple[str, ...]:
    """Return the chain of runs that a run belongs to, each resuming the one before, oldest first."""
    parents: dict[str, str | None] = {}
    for line in read_lines(log, only=RunStarted.type):
        if (envelope := line.envelope()) and isinstance(envelope.event, RunStarted):
            parents[line.run_id] = envelope.event.resumes
    if run_id not in parents:
        raise InputError(f"there is no run {run_id!r} in this session", "`agent sessions show` lists its runs")
    return runs_in_chain(parents, run_id)


def runs_in_chain(parents: Mapping[str, str | None], run_id: str) -> tuple[str, ...]:
    """Return the runs that share a chain root with `run_id`, in the order of `parents`."""
    first = _chain_root(parents, run_id)
    return tuple(run for run in parents if _chain_root(parents, run) == first)


def latest_of_chains(parents: Mapping[str, str | None], runs: Iterable[str]) -> list[str]:
    """Return those of `runs` that no other run resumes."""
    resumed = set(parents.values())
    return [run for run in runs if run not in resumed]


def _chain_root(parents: Mapping[str, str | None], run_id: str) -> str:
    seen = {run_id}
    while (parent := parents.get(run_id)) and parent not in seen:
        seen.add(parent)
        run_id = parent
    return run_id


class RunIsFinished(UsageError):
    """The run has succeeded, so there is nothing to resume."""


class ResumedMeanwhile(UsageError):
    """Another process resumed the run first and reported a result, which the user should see before resuming again."""

    def __init__(self, run_id: str, last: str) -> None:
        super().__init__(
            f"run {run_id} was resumed meanwhile, by {last}, which has ended",
            f"see `agent runs show {last}`; to resume it: agent resume {last}",
        )


def unfinished_run(log: Path, run_id: str, effect_of: EffectOf) -> UnfinishedRun:
    """Return the state of the chain that a run belongs to; `effect_of` returns the effect of a tool.

    Raises RunIsFinished if a run of the chain succeeded.
    """
    chain = run_chain(log, run_id)
    state = _ChainState()
    for line in read_lines(log):
        if line.run_id in chain:
            state.apply(line)
    for run, subtype in state.subtypes.items():
        if subtype == "success":
            hint = 'to continue the session with a new task: agent run --continue "your task"'
            raise RunIsFinished(f"run {run} finished successfully; there is nothing to resume", hint)
    plan = state.plan_steps()
    steps = {step.id: unfinished for step in plan if (unfinished := state.unfinished_step(step, effect_of))}
    has_lead = any(step.id == LEAD for step in plan)
    # Without a plan, a lead can also resume it.
    led = resumed_conversation(log, run_id, effect_of) if has_lead or not plan else None
    if led and has_lead:
        calls = state.repeated_calls(led.open_calls) or state.lost_plan_call(plan)
        steps[LEAD] = replace(led, messages=(), open_calls=calls)
    return UnfinishedRun(
        run_id=chain[-1],
        has_ended=chain[-1] in state.subtypes,
        lineage=chain[0],
        request=state.messages.get("user", ""),
        context=state.messages.get("context", ""),
        schema=state.messages.get("schema", ""),
        model=state.model or "",
        plan=plan,
        is_plan_complete=bool(plan) and state.plan_reasons[-1:] != [STREAMING],
        is_plan_given="plan" in state.messages,
        steps=steps,
        conversation=led.messages if led else (),
        reported=state.reported_steps() if led else {},
        replans=sum(reason.startswith(SURPRISE) for reason in state.plan_reasons),
        clarifications=sum(reason.startswith(ANSWER) for reason in state.plan_reasons),
        effects=state.effects.records,
        answer=state.answer,
        images=state.images,
    )


@dataclass(slots=True)
class _StepLog:
    """The log lines of a step since its last stored result, and its last status."""

    lines: list[LogLine] = field(default_factory=list)
    status: StepStatus | Literal[""] = ""
    summary: str = ""


class _ChainState:
    """Accumulates the log of a chain of runs, decoding only the events it needs."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.plan_reasons: list[str] = []
        self.subtypes: dict[str, str] = {}
        self.model: str | None = None
        self.answer = ""
        self.images: tuple[Image, ...] = ()
        self.effects = EffectFold()
        self._plan: LogLine | None = None
        self._steps: dict[str, _StepLog] = {}
        # Steps whose results the lead has read; whether it was writing a plan, or its last plan was not yet announced.
        self._reported: set[str] = set()
        self._is_writing_plan = False
        self._has_new_plan = False

    def apply(self, line: LogLine) -> None:
        if line.type in (EffectRecorded.type, ToolCompleted.type):
            self._apply_to_effects(line)
        if line.step_id == LEAD:
            self._apply_to_lead(line)
        if line.step_id is not None:
            self._apply_to_step(line, self._steps.setdefault(line.step_id, _StepLog()))
        elif line.type == PlanUpdated.type:
            self._plan = line
            self.plan_reasons.append(reason := _plan_reason(line))
            self._is_writing_plan = reason == STREAMING or (reason == RESUMED and self._is_writing_plan)
            self._has_new_plan = self._has_new_plan and reason in (STREAMING, RESUMED)
        elif line.type in (RunStarted.type, MessageAdded.type, RunCompleted.type) and (envelope := line.envelope()):
            match envelope.event:
                case RunStarted(model=model) if self.model is None:
                    self.model = model
                case MessageAdded(role="assistant", content=content):
                    self.answer = content
                case MessageAdded(role=role, content=content, images=images):
                    self.images = self.images or images or ()
                    # Later runs of a chain repeat the request; the first one counts.
                    self.messages.setdefault(role, content)
                case RunCompleted(subtype=subtype):
                    self.subtypes[line.run_id] = subtype
                case _:
                    pass

    def plan_steps(self) -> tuple[PlanStep, ...]:
        """Return the newest plan; before the first announcement that is the plan given by the user, if any."""
        announced = self._plan.envelope() if self._plan else None
        if announced and isinstance(announced.event, PlanUpdated):
            return announced.event.steps
        try:
            return tuple(decode(PlanStep, step, extra="ignore") for step in json.loads(self.messages.get("plan", "[]")))
        except ValueError:
            return ()

    def unfinished_step(self, step: PlanStep, effect_of: EffectOf) -> UnfinishedStep | None:
        """Return the unfinished work of a step, or None if it starts from scratch."""
        step_log = self._steps.get(step.id, _StepLog())
        events = [envelope for line in step_log.lines if (envelope := line.envelope())]
        if step.type == "task" and step.id != LEAD:
            return unfinished_task(events, effect_of)
        if step.type == "tool" and step_log.status in _INTERRUPTED:
            return unfinished_call(events, effect_of, step.id)
        return None

    def repeated_calls(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """Return the unfinished calls of the lead to repeat; steps that are in the plan are only awaited."""
        return calls if self._has_new_plan else tuple(replace(call, arguments={}) for call in calls)

    def lost_plan_call(self, plan: tuple[PlanStep, ...]) -> tuple[ToolCall, ...]:
        """Return the call for steps that were started while the lead wrote a plan that it never finished."""
        steps = [{name: encode(getattr(step, name)) for name in _PLAN_FIELDS} for step in plan if step.id != LEAD]
        if not (steps and self._is_writing_plan):
            return ()
        return (ToolCall(id=f"resumed{len(self.plan_reasons)}", name=PLAN_TOOL, arguments={"steps": steps}),)

    def reported_steps(self) -> dict[str, ExecutorResponse]:
        """Return the results of the steps that the lead has read."""
        return {
            name: ExecutorResponse(task_id=name, status=step.status, summary=step.summary)
            for name, step in self._steps.items()
            if name in self._reported and step.status
        }

    def _apply_to_effects(self, line: LogLine) -> None:
        # Results are long, and few calls have external effects.
        if line.type == ToolCompleted.type and self.effects.is_settled:
            return
        match (envelope := line.envelope()) and envelope.event:
            case EffectRecorded() as effect:
                self.effects.record(effect, run_id=line.run_id, step_id=line.step_id, ts=line.ts)
            case ToolCompleted(tool_id=tool_id, status=status) if status != "cancelled":
                self.effects.settle(line.run_id, line.step_id, tool_id)
            case _:
                pass

    def _apply_to_lead(self, line: LogLine) -> None:
        if line.type not in (MessageAdded.type, ToolCompleted.type) or not (envelope := line.envelope()):
            return
        match envelope.event:
            case MessageAdded(role="assistant", tool_calls=calls) if calls:
                if any(call.name == PLAN_TOOL for call in calls):
                    self._is_writing_plan, self._has_new_plan = False, True
            case MessageAdded(role="user", content=text) | ToolCompleted(name="plan", output=text):
                self._reported |= set(_RESULT_STEP.findall(text))
            case _:
                pass

    def _apply_to_step(self, line: LogLine, step: _StepLog) -> None:
        step.lines.append(line)
        if line.type not in (StepStarted.type, StepCompleted.type) or not (envelope := line.envelope()):
            return
        match envelope.event:
            case StepStarted(cache=cache):
                step.status = ""
                if cache != "hit":
                    # New work makes an earlier answer stale.
                    self.answer = ""
                if cache != "resumed":
                    step.lines = [line]
            case StepCompleted(status=status, summary=summary, key=key):
                step.status, step.summary = status, summary
                if key is not None:
                    # Its result is in the step cache.
                    step.lines = []
            case _:
                pass


def _plan_reason(line: LogLine) -> str:
    """Return the reason of a plan without decoding the rest: plans may be long and are announced often."""
    if match := _REASON.search(line.raw):
        return str(json.loads(match[1]))
    return ""
