"""Folds the events of one run into the views that pages and exports show."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    EffectRecorded,
    ErrorRaised,
    FilesChanged,
    MessageAdded,
    NetworkAttempted,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.effects import EffectFold, EffectRecord
from agent.vocabulary.outcome import RunnableFile
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.result import FileChange

E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One tool call; if the log has no end for it, its status is `unfinished`.

    `output` is the text that the model read, or the full output if `output_file` names its file. `is_check`
    marks a call that the agent itself made to verify the step.
    """

    tool_id: str
    name: str
    input: Mapping[str, object]
    attempt: int = 1
    status: str = "unfinished"
    exit_code: int | None = None
    output: str = ""
    output_file: str | None = None
    images: tuple[Image, ...] = ()
    is_check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step as planned and as executed; `said` is the model's last message in it."""

    id: str
    title: str
    type: str = "task"
    instruction: str = ""
    depends_on: tuple[str, ...] = ()
    verify: str = ""
    status: str = "pending"
    cache: str = "miss"
    attempts: int = 0
    summary: str = ""
    verified: bool | None = None
    evidence: tuple[str, ...] = ()
    cost_usd: float | None = None
    elapsed_ms: int = 0
    key: str | None = None
    calls: tuple[CallView, ...] = ()
    changes: tuple[FileChange, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revised plan: the reason, and the diff to the one before."""

    revision: int
    reason: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run; if the log has no end for it, `subtype` is `unfinished` and `exit_code` None."""

    run_id: str
    session_id: str
    started_at: str
    updated_at: str
    model: str = ""
    cwd: str = ""
    backend: str = ""
    resumes: str | None = None
    request: str = ""
    images: tuple[Image, ...] = ()
    revisions: tuple[Revision, ...] = ()
    steps: tuple[StepView, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    answer: str = ""
    subtype: str = "unfinished"
    exit_code: int | None = None
    verified: bool | None = None
    artifacts: tuple[str, ...] = ()
    permission_denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    will_run: tuple[RunnableFile, ...] = ()
    duration_ms: int = 0
    usage: Usage | None = None
    resume: str | None = None


def run_view(events: Sequence[Envelope]) -> RunView:
    """Fold the events of one run; there must be at least one."""
    kinds = _by_kind(events)
    messages = kinds.get(MessageAdded, ())
    plans = _of(kinds, PlanUpdated)
    started = next(iter(_of(kinds, RunStarted)), None)
    end = next(iter(_of(kinds, RunCompleted)), None)
    return RunView(
        run_id=events[0].run_id,
        session_id=events[0].session_id,
        started_at=events[0].ts,
        updated_at=events[-1].ts,
        model=started.model if started else "",
        cwd=started.cwd if started else "",
        backend=started.backend if started else "",
        resumes=started.resumes if started else None,
        request=next((text for e in messages if (text := request_text(e))), ""),
        images=next((message.images for message in _of(kinds, MessageAdded) if message.images), ()),
        revisions=tuple(Revision(revision=p.revision, reason=p.reason, diff=p.diff) for p in plans if p.diff),
        steps=_steps(plans, events),
        warnings=(
            *(started.warnings if started else ()),
            *(warning.message for warning in _of(kinds, WarningRaised)),
        ),
        errors=tuple(error.message for error in _of(kinds, ErrorRaised)),
        answer=end.result if end else "",
        subtype=end.subtype if end else "unfinished",
        exit_code=end.exit_code if end else None,
        verified=end.verified if end else None,
        artifacts=end.artifacts if end else (),
        permission_denials=end.permission_denials if end else (),
        deferred=end.deferred if end else (),
        will_run=end.will_run if end else (),
        duration_ms=end.duration_ms if end else 0,
        usage=end.usage if end else _partial_usage(events),
        resume=end.resume if end else None,
    )


def _by_kind(events: Iterable[Envelope]) -> dict[type, list[Envelope]]:
    """Return the events by type, in one pass: a log may have a hundred thousand."""
    kinds: dict[type, list[Envelope]] = {}
    for envelope in events:
        kinds.setdefault(type(envelope.event), []).append(envelope)
    return kinds


def _of(kinds: Mapping[type, Sequence[Envelope]], kind: type[E]) -> list[E]:
    return [envelope.event for envelope in kinds.get(kind, ()) if isinstance(envelope.event, kind)]


def request_text(envelope: Envelope) -> str | None:
    """Return the user's request if this event contains it."""
    match envelope.event:
        case MessageAdded(role="user", content=content, delta=False) if envelope.step_id is None:
            return content
        case _:
            return None


def step_view(planned: PlanStep, events: Iterable[Envelope]) -> StepView:
    events = list(events)
    kinds = _by_kind(events)
    started, ends = _of(kinds, StepStarted), _of(kinds, StepCompleted)
    end = ends[-1] if ends else None
    messages = kinds.get(MessageAdded, [])
    return StepView(
        id=planned.id,
        title=planned.title,
        type=planned.type,
        instruction=planned.instruction,
        depends_on=planned.depends_on,
        verify=planned.verify,
        status=end.status if end else "unfinished" if started else "pending",
        cache=started[0].cache if started else "miss",
        attempts=max((e.attempt or 1 for e in events), default=0),
        summary=end.summary if end else "",
        verified=end.verified if end else None,
        evidence=end.evidence if end else (),
        cost_usd=end.cost_usd if end else spent.cost_usd if (spent := _reply_usage(messages)) else None,
        elapsed_ms=end.elapsed_ms if end else 0,
        key=end.key if end else None,
        calls=_calls(events),
        changes=tuple(change for changed in _of(kinds, FilesChanged) for change in changed.changes),
        said=next((text for e in reversed(messages) if (text := _answer_text(e))), ""),
    )


def _reply_usage(events: Iterable[Envelope]) -> Usage | None:
    """Return the usage of a step's replies, or None if the log has none."""
    known = [e.event.spent for e in events if isinstance(e.event, MessageAdded) and e.event.spent]
    return sum(known, Usage()) if known else None


def _partial_usage(events: Sequence[Envelope]) -> Usage | None:
    """Return the known usage of a run without an end: its planning and all its steps, finished or not."""
    spent: dict[str, Usage] = {}
    for envelope in events:
        match envelope.event:
            case PlanUpdated(spent=usage) if usage:
                spent[""] = usage
            case MessageAdded(spent=usage) if usage and envelope.step_id:
                spent[envelope.step_id] = spent.get(envelope.step_id, Usage()) + usage
            case StepCompleted(usage=usage):
                spent[envelope.step_id or ""] = usage
            case _:
                pass
    return sum(spent.values(), Usage()) if spent else None


def _steps(plans: Sequence[PlanUpdated], events: Sequence[Envelope]) -> tuple[StepView, ...]:
    """Return, in plan order, the steps of the current plan and all others that have events."""
    by_step: dict[str, list[Envelope]] = {}
    for envelope in events:
        if envelope.step_id is not None:
            by_step.setdefault(envelope.step_id, []).append(envelope)
    planned = {step.id: step for plan in plans for step in plan.steps}
    current = {step.id for step in plans[-1].steps} if plans else set()
    unknown = {name: PlanStep(id=name, title=name, instruction="") for name in by_step if name not in planned}
    return tuple(
        step_view(step, by_step.get(name, []))
        for name, step in (planned | unknown).items()
        if name in current or name in by_step
    )


def _calls(events: Iterable[Envelope]) -> tuple[CallView, ...]:
    """Pair the starts and ends of calls; providers reuse call ids, so an end closes the oldest open call."""
    calls: list[tuple[Envelope, ToolStarted, ToolCompleted | None]] = []
    pending: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    for envelope in events:
        event = envelope.event
        if isinstance(event, ToolStarted):
            pending[event.tool_id, event.name].append(len(calls))
            calls.append((envelope, event, None))
        elif isinstance(event, ToolCompleted) and (waiting := pending[event.tool_id, event.name]):
            index = waiting.popleft()
            calls[index] = (*calls[index][:2], event)
    return tuple(_call(*found) for found in calls)


def _call(envelope: Envelope, start: ToolStarted, end: ToolCompleted | None) -> CallView:
    return CallView(
        tool_id=start.tool_id,
        name=start.name,
        input=start.input,
        attempt=envelope.attempt or 1,
        status=end.status if end else "unfinished",
        exit_code=end.exit_code if end else None,
        output=end.output if end else "",
        images=(end.images or ()) if end else (),
        is_check=start.tool_id.startswith(f"{envelope.step_id}.check."),
    )


def _answer_text(envelope: Envelope) -> str | None:
    match envelope.event:
        case MessageAdded(role="assistant", content=content, delta=False, tool_calls=None) if content.strip():
            return content
        case _:
            return None


def run_effects(chain: Iterable[Iterable[Envelope]]) -> list[EffectRecord]:
    """Return the effects of a run and of those it resumed: recorded ones, and connections of sandboxed commands."""
    effects = EffectFold()
    connections: list[EffectRecord] = []
    for envelope in (envelope for events in chain for envelope in events):
        match envelope.event:
            case EffectRecorded() as effect:
                effects.record(effect, run_id=envelope.run_id, step_id=envelope.step_id, ts=envelope.ts)
            case NetworkAttempted(allowed=True, host=host, port=port):
                connections.append(
                    EffectRecord(
                        effect_id=f"{envelope.run_id}-{envelope.seq}",
                        kind="connection",
                        target=f"{host}:{port}",
                        status="started",
                        started_at=envelope.ts,
                    )
                )
            case ToolCompleted(tool_id=tool_id, status=status) if status != "cancelled":
                effects.settle(envelope.run_id, envelope.step_id, tool_id)
            case RunCompleted():
                # The sandbox ends with its run, and its connections with it.
                connections = [replace(known, status="done", is_settled=True) for known in connections]
            case _:
                pass
    return sorted((*effects.records.values(), *connections), key=lambda record: record.started_at)
