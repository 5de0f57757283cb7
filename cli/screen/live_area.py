"""The few lines that move: running steps, what waits for a person, and what the run has cost so far."""

import time
from collections.abc import Callable

from rich.cells import cell_len

from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    BudgetSpent,
    Envelope,
    MessageSaid,
    PlanMade,
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.usage import Usage
from cli.screen.colors import Paint, Tone, clip, clip_start
from cli.screen.format import call_subject, format_cost, format_count, format_duration
from tooling.contract.fast_dataclass import dataclass

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR_CELLS = 10
_TEXT_CHARS = 400


@dataclass(slots=True, kw_only=True)
class _RunningStep:
    """One step at work."""

    title: str
    started_at: float
    activity: str = ""
    text: str = ""


class LiveArea:
    """A fold over the events of a run, drawn as lines; never taller or wider than it is told."""

    def __init__(self, *, paint: Paint, now: Callable[[], float] = time.monotonic) -> None:
        self._paint = paint
        self._now = now
        self._steps: dict[str, _RunningStep] = {}
        self._pending: dict[str, str] = {}
        self._planned_count = 0
        self._completed_count = 0
        self._usage = Usage()
        self._budget: BudgetSpent | None = None
        self._started_at: float | None = None

    @property
    def is_running(self) -> bool:
        """Say whether there is a run to show."""
        return self._started_at is not None

    @property
    def running_steps(self) -> tuple[str, ...]:
        """Return the ids of the steps at work."""
        return tuple(self._steps)

    @property
    def pending_count(self) -> int:
        """Return how many approvals and questions wait for the person."""
        return len(self._pending)

    def on_event(self, envelope: Envelope) -> None:
        """Take in one event."""
        match envelope.event:
            case RunStarted():
                self.reset()
                self._started_at = self._now()
            case PlanMade(steps=steps):
                self._planned_count = len(steps)
            case BudgetSpent() as budget:
                self._budget = budget
            case ApprovalRequested(approval_id=asked) | QuestionAsked(question_id=asked):
                self._pending[asked] = envelope.step_id or ""
            case ApprovalResolved(approval_id=asked) | QuestionAnswered(question_id=asked):
                self._pending.pop(asked, None)
            case RunCompleted():
                self.reset()
            case _ if envelope.step_id:
                self._on_step_event(envelope.step_id, envelope)
            case _:
                pass

    def reset(self) -> None:
        """Have nothing to show."""
        self._steps, self._pending = {}, {}
        self._planned_count = self._completed_count = 0
        self._usage, self._budget, self._started_at = Usage(), None, None

    def lines(self, width: int, height: int) -> list[str]:
        """Return at most `height` lines of at most `width` cells."""
        if self._started_at is None or height <= 0:
            return []
        room = max(0, height - 1)
        lanes = list(self._steps.items())
        shown = lanes if len(lanes) <= room else lanes[: max(0, room - 1)]
        lines = [self._step_line(step, lane, width) for step, lane in shown]
        if hidden := len(lanes) - len(shown):
            lines.append(self._paint("quiet", clip(f"… and {hidden} more steps", width)))
        return [*lines[:room], self._footer(width, self._now() - self._started_at)]

    def _on_step_event(self, step: str, envelope: Envelope) -> None:
        lane = self._steps.get(step)
        match envelope.event:
            case StepStarted(title=title):
                self._steps[step] = _RunningStep(title=title, started_at=self._now())
            case StepCompleted(usage=usage):
                self._steps.pop(step, None)
                self._completed_count += 1
                self._usage += usage
            case ToolStarted(name=name, input=arguments) if lane:
                lane.activity = f"{name} {call_subject(arguments)}".strip()
            case ToolCompleted(output=output) if lane:
                lane.activity = (output.strip().splitlines() or [lane.activity])[-1]
            case MessageSaid(delta=True, content=content) if lane:
                lane.text = (lane.text + content)[-_TEXT_CHARS:]
                lane.activity = (lane.text.strip().splitlines() or [""])[-1]
            case MessageSaid(delta=False) if lane:
                lane.text = ""
            case _:
                pass

    def _step_line(self, step: str, lane: _RunningStep, width: int) -> str:
        is_waiting = step in self._pending.values()
        mark = "?" if is_waiting else _SPINNER[int(self._now() * 10) % len(_SPINNER)]
        took = f" {format_duration(self._now() - lane.started_at)}"[:width]
        head = clip(f"{mark} {step} {lane.title}", min(width * 2 // 3, width - len(took)))
        left = width - cell_len(head) - len(took) - 3
        doing = clip("waits for you", left) if is_waiting else clip_start(lane.activity, left)
        tail = f" │ {doing}" if doing and left > 8 else ""
        tone: Tone = "warn" if is_waiting else "accent"
        return self._paint(tone, head) + self._paint("quiet", took + tail)

    def _footer(self, width: int, seconds: float) -> str:
        spent = self._budget.usage if self._budget else self._usage
        parts = [f"{self._completed_count}/{self._planned_count} steps" if self._planned_count else "planning"]
        parts.append(format_duration(seconds))
        if spent.total_tokens:
            parts.append(f"{format_count(spent.total_tokens)} tokens")
        cost = self._budget.cost_usd if self._budget else spent.cost_usd
        if cost:
            parts.append(format_cost(cost))
        if bar := self._budget_bar():
            parts.append(bar)
        if self._pending:
            parts.append(f"{len(self._pending)} waiting for you")
        return self._paint("quiet", clip("  " + " · ".join(parts), width))

    def _budget_bar(self) -> str:
        if self._budget is None:
            return ""
        shares = [
            spent / limit
            for spent, limit in (
                (self._budget.usage.total_tokens, self._budget.max_tokens),
                (self._budget.cost_usd, self._budget.max_budget_usd),
            )
            if limit and spent is not None
        ]
        if not shares:
            return ""
        share = min(1.0, max(shares))
        full = round(share * _BAR_CELLS)
        return f"budget {'█' * full}{'░' * (_BAR_CELLS - full)} {share:.0%}"
