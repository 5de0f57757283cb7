"""The live lines of a run: running steps, open questions, and a footer with progress and cost."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.cells import cell_len

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    BudgetSpent,
    MessageAdded,
    PlanUpdated,
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
)
from agent.vocabulary.plan import LEAD
from agent.vocabulary.usage import Usage
from cli.screen.colors import Paint, Tone, clip, clip_line, clip_start, paint_parts
from cli.screen.format import call_text, format_cost, format_count, format_duration
from cli.screen.open_calls import MAX_LIVE_LINES
from cli.screen.thoughts import Thoughts
from cli.screen.work_lines import MAX_ID_CELLS, widest_id
from tooling.contract.fast_dataclass import dataclass

# The id of a question that no event has.
_OF_PROMPT = "prompt"
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR_CELLS = 10
_TEXT_CHARS = 400
_THOUGHT_LINES = 3
_MIN_LINES = 6
_INDENT = "    "
WAITING_FOR_USER = "waiting for you"
THINKING, ANSWERING = "thinking", "answering"


@dataclass(slots=True, kw_only=True)
class _RunningStep:
    """State of a running step; the title of the lead is its current activity."""

    title: str
    started_at: float
    activity: str = ""
    output: tuple[str, ...] = ()
    text: str = ""
    waited_s: float = 0.0
    waiting_since: float | None = None

    def pause(self, now: float) -> None:
        """Stop the clock while the step waits for the user."""
        self.waiting_since = now if self.waiting_since is None else self.waiting_since

    def go_on(self, now: float) -> None:
        """Start the clock again."""
        self.waited_s += 0.0 if self.waiting_since is None else now - self.waiting_since
        self.waiting_since = None

    def seconds(self, now: float) -> float:
        """Return how long the step has worked, without the time it waited for the user."""
        return (now if self.waiting_since is None else self.waiting_since) - self.started_at - self.waited_s


class LiveArea:
    """Folds the events of a run into lines, never more or wider than requested."""

    def __init__(self, *, paint: Paint, stop_key: str = "", now: Callable[[], float] = time.monotonic) -> None:
        self._paint = paint
        self._stop_key = stop_key
        self._now = now
        self._thoughts = Thoughts(now)
        self._steps: dict[str, _RunningStep] = {}
        self._lead: _RunningStep | None = None
        self._pending: dict[str, str] = {}
        self._planned_count: int | None = None
        self._completed_count = 0
        self._usage = Usage()
        self._budget: BudgetSpent | None = None
        self._started_at: float | None = None

    @property
    def is_running(self) -> bool:
        return self._started_at is not None

    @property
    def running_steps(self) -> tuple[str, ...]:
        """Return the ids of the running steps, without the lead."""
        return tuple(self._steps)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show that a question waits for the user that is not one of the run's own."""
        self._pending[_OF_PROMPT] = ""
        try:
            yield
        finally:
            self._pending.pop(_OF_PROMPT, None)

    def on_event(self, envelope: Envelope) -> None:
        """Update the state from one event."""
        self._thoughts.on_event(envelope)
        match envelope.event:
            case RunStarted():
                self.reset()
                self._started_at = self._now()
            case PlanUpdated(steps=steps):
                self._planned_count = sum(step.id != LEAD for step in steps)
            case BudgetSpent() as budget:
                self._budget = budget
            case ApprovalRequested(approval_id=asked, decided=False) | QuestionAsked(question_id=asked):
                self._pending[asked] = envelope.step_id or ""
                if step := self._running_step(envelope.step_id):
                    step.pause(self._now())
            case ApprovalResolved(approval_id=asked) | QuestionAnswered(question_id=asked):
                self._pending.pop(asked, None)
                step = self._running_step(envelope.step_id)
                if step and envelope.step_id not in self._pending.values():
                    step.go_on(self._now())
            case RunCompleted():
                self.reset()
            case _ if envelope.step_id == LEAD:
                self._on_lead_event(envelope)
            case _ if envelope.step_id:
                self._on_step_event(envelope.step_id, envelope)
            case _:
                pass

    def reset(self) -> None:
        """Reset the state; `lines` returns nothing until the next run starts."""
        self._steps, self._lead, self._pending = {}, None, {}
        self._planned_count, self._completed_count = None, 0
        self._usage, self._budget, self._started_at = Usage(), None, None

    def lines(self, width: int, height: int) -> list[str]:
        """Return at most `height` lines of at most `width` cells."""
        if self._started_at is None or height <= 0:
            return []
        # The larger part of the window belongs to finished lines.
        room = max(min(height - 1, _MIN_LINES), (height - 1) // 2)
        # While steps run, the lead waits for them.
        running = list(self._steps.items()) or ([(LEAD, self._lead)] if self._lead else [])
        shown = running if len(running) <= room else running[: max(0, room - 1)]
        id_cells = min(widest_id([step_id for step_id, _ in shown if step_id != LEAD]), MAX_ID_CELLS, width // 4)
        lines = [self._step_line(step_id, step, width, id_cells) for step_id, step in shown]
        # Only for the lead: the last line of a step's output is in its own line.
        output = [line for _, step in shown for line in step.output]
        lines += [self._paint("quiet", clip_line(f"{_INDENT}{line}", width)) for line in output]
        if hidden := len(running) - len(shown):
            lines.append(self._paint("quiet", clip(f"… and {hidden} more steps", width)))
        lines += self._thought_lines(width, min(_THOUGHT_LINES, room - len(lines)))
        return [*lines[:room], self._footer(width, self._now() - self._started_at)]

    def _running_step(self, step_id: str | None) -> _RunningStep | None:
        return self._lead if step_id == LEAD else self._steps.get(step_id or "")

    def _thought_lines(self, width: int, height: int) -> list[str]:
        lines = self._thoughts.lines(width - len(_INDENT), height)
        return [self._paint("quiet", clip_line(_INDENT + line, width)) for line in lines]

    def _on_step_event(self, step_id: str, envelope: Envelope) -> None:
        step = self._steps.get(step_id)
        match envelope.event:
            case StepStarted(title=title):
                self._steps[step_id] = _RunningStep(title=title, started_at=self._now())
            case StepCompleted(usage=usage):
                self._steps.pop(step_id, None)
                self._completed_count += 1
                self._usage += usage
            case ToolStarted(name=name, input=arguments) if step:
                step.activity = call_text(name, arguments)
            case ToolOutput(text=output) if step:
                step.activity = output.splitlines()[-1]
            case ToolCompleted(output=output) if step:
                step.activity = (output.strip().splitlines() or [step.activity])[-1]
            case MessageAdded(role="thought") if step:
                step.activity = THINKING
            case MessageAdded(delta=True, content=content) if step:
                step.text = (step.text + content)[-_TEXT_CHARS:]
                step.activity = (step.text.strip().splitlines() or [""])[-1]
            case MessageAdded(delta=False) if step:
                step.text = ""
            case _:
                pass

    def _on_lead_event(self, envelope: Envelope) -> None:
        match envelope.event:
            case StepStarted() | ToolCompleted():
                self._set_lead(THINKING)
            case ToolStarted(name=name, input=arguments):
                self._set_lead(call_text(name, arguments))
            case ToolOutput(text=output) if self._lead:
                self._lead.output = tuple(output.expandtabs().splitlines()[-MAX_LIVE_LINES:])
            case MessageAdded(delta=True) if self._lead and self._lead.title == THINKING:
                self._set_lead(ANSWERING)
            case StepCompleted(usage=usage):
                self._lead = None
                self._usage += usage
            case _:
                pass

    def _set_lead(self, activity: str) -> None:
        self._lead = _RunningStep(title=activity, started_at=self._now())

    def _step_line(self, step_id: str, step: _RunningStep, width: int, id_cells: int) -> str:
        is_waiting = step_id in self._pending.values()
        mark = "?" if is_waiting else _SPINNER[int(self._now() * 10) % len(_SPINNER)]
        tone: Tone = "warn" if is_waiting else "accent"
        name = "" if step_id == LEAD else clip(step_id, id_cells)
        column = f"{name}{' ' * (id_cells - cell_len(name))} " if name else ""
        elapsed = f" {format_duration(step.seconds(self._now()))}"
        room = width - len(mark) - 1 - cell_len(column)
        has_tail = is_waiting or bool(step.activity)
        title = clip(step.title, min(width * 2 // 3 if has_tail else width, room - len(elapsed)))
        left = room - cell_len(title) - len(elapsed) - 3
        activity = clip(WAITING_FOR_USER, left) if is_waiting else clip_start(step.activity, left)
        tail = f" │ {activity}" if activity and left > 8 else ""
        return paint_parts(
            self._paint, width, (tone, f"{mark} "), ("accent", column), ("plain", title), ("quiet", elapsed + tail)
        )

    def _footer(self, width: int, seconds: float) -> str:
        spent = self._budget.usage if self._budget else self._usage
        parts = ["planning"] if self._planned_count is None and not self._pending else []
        if self._planned_count:
            parts.append(f"{self._completed_count}/{self._planned_count} steps")
        parts.append(format_duration(seconds))
        if spent.total_tokens:
            parts.append(f"{format_count(spent.total_tokens)} tokens")
        cost = self._budget.cost_usd if self._budget else spent.cost_usd
        if cost:
            parts.append(format_cost(cost))
        if bar := self._budget_bar():
            parts.append(bar)
        if self._pending:
            parts.append(f"{len(self._pending)} {WAITING_FOR_USER}")
        elif self._stop_key:
            parts.append(f"{self._stop_key} stops")
        return self._paint("quiet", clip_line("  " + " · ".join(parts), width))

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
