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
from cli.screen.colors import Paint, Tone, clipped, ending
from cli.screen.format import amount, money, span, subject
from tooling.contract.fast_dataclass import dataclass

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR_CELLS = 10
_SAID_CHARS = 400


@dataclass(slots=True, kw_only=True)
class _Lane:
    """One step at work."""

    title: str
    began: float
    doing: str = ""
    said: str = ""


class LiveArea:
    """A fold over the events of a run, drawn as lines; never taller or wider than it is told."""

    def __init__(self, *, paint: Paint, now: Callable[[], float] = time.monotonic) -> None:
        self._paint = paint
        self._now = now
        self._lanes: dict[str, _Lane] = {}
        self._waiting: dict[str, str] = {}
        self._planned = 0
        self._ended = 0
        self._usage = Usage()
        self._budget: BudgetSpent | None = None
        self._began: float | None = None

    @property
    def is_running(self) -> bool:
        """Say whether there is a run to show."""
        return self._began is not None

    @property
    def running(self) -> tuple[str, ...]:
        """Return the ids of the steps at work."""
        return tuple(self._lanes)

    @property
    def waiting(self) -> int:
        """Return how many approvals and questions wait for the person."""
        return len(self._waiting)

    def hear(self, envelope: Envelope) -> None:
        """Take in one event."""
        match envelope.event:
            case RunStarted():
                self.forget()
                self._began = self._now()
            case PlanMade(steps=steps):
                self._planned = len(steps)
            case BudgetSpent() as budget:
                self._budget = budget
            case ApprovalRequested(approval_id=asked) | QuestionAsked(question_id=asked):
                self._waiting[asked] = envelope.step_id or ""
            case ApprovalResolved(approval_id=asked) | QuestionAnswered(question_id=asked):
                self._waiting.pop(asked, None)
            case RunCompleted():
                self.forget()
            case _ if envelope.step_id:
                self._hear_step(envelope.step_id, envelope)
            case _:
                pass

    def forget(self) -> None:
        """Have nothing to show."""
        self._lanes, self._waiting = {}, {}
        self._planned = self._ended = 0
        self._usage, self._budget, self._began = Usage(), None, None

    def lines(self, width: int, height: int) -> list[str]:
        """Return at most `height` lines of at most `width` cells."""
        if self._began is None or height <= 0:
            return []
        room = max(0, height - 1)
        lanes = list(self._lanes.items())
        shown = lanes if len(lanes) <= room else lanes[: max(0, room - 1)]
        lines = [self._lane_line(step, lane, width) for step, lane in shown]
        if hidden := len(lanes) - len(shown):
            lines.append(self._paint("quiet", clipped(f"… and {hidden} more steps", width)))
        return [*lines[:room], self._footer(width, self._now() - self._began)]

    def _hear_step(self, step: str, envelope: Envelope) -> None:
        lane = self._lanes.get(step)
        match envelope.event:
            case StepStarted(title=title):
                self._lanes[step] = _Lane(title=title, began=self._now())
            case StepCompleted(usage=usage):
                self._lanes.pop(step, None)
                self._ended += 1
                self._usage += usage
            case ToolStarted(name=name, input=arguments) if lane:
                lane.doing = f"{name} {subject(arguments)}".strip()
            case ToolCompleted(output=output) if lane:
                lane.doing = (output.strip().splitlines() or [lane.doing])[-1]
            case MessageSaid(delta=True, content=content) if lane:
                lane.said = (lane.said + content)[-_SAID_CHARS:]
                lane.doing = (lane.said.strip().splitlines() or [""])[-1]
            case MessageSaid(delta=False) if lane:
                lane.said = ""
            case _:
                pass

    def _lane_line(self, step: str, lane: _Lane, width: int) -> str:
        is_waiting = step in self._waiting.values()
        mark = "?" if is_waiting else _SPINNER[int(self._now() * 10) % len(_SPINNER)]
        took = f" {span(self._now() - lane.began)}"[:width]
        head = clipped(f"{mark} {step} {lane.title}", min(width * 2 // 3, width - len(took)))
        left = width - cell_len(head) - len(took) - 3
        doing = clipped("waits for you", left) if is_waiting else ending(lane.doing, left)
        tail = f" │ {doing}" if doing and left > 8 else ""
        tone: Tone = "warn" if is_waiting else "accent"
        return self._paint(tone, head) + self._paint("quiet", took + tail)

    def _footer(self, width: int, seconds: float) -> str:
        spent = self._budget.usage if self._budget else self._usage
        parts = [f"{self._ended}/{self._planned} steps" if self._planned else "planning"]
        parts.append(span(seconds))
        if spent.total_tokens:
            parts.append(f"{amount(spent.total_tokens)} tokens")
        cost = self._budget.cost_usd if self._budget else spent.cost_usd
        if cost:
            parts.append(money(cost))
        if bar := self._bar():
            parts.append(bar)
        if self._waiting:
            parts.append(f"{len(self._waiting)} waiting for you")
        return self._paint("quiet", clipped("  " + " · ".join(parts), width))

    def _bar(self) -> str:
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
