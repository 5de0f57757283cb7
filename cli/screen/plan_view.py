"""The current plan of a run and the status of its steps, folded from events; the lead is not drawn."""

from agent.protocol.envelope import Envelope
from agent.protocol.events import PlanUpdated, RunStarted, StepCompleted, StepStarted
from agent.vocabulary.plan import LEAD, PlanStep
from cli.screen.colors import Paint
from cli.screen.plan_graph import graph_lines


class PlanView:
    """Tracks the steps of a run, their titles and statuses; `steps` are those a user sees, without the lead."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._titles: dict[str, str] = {}
        self._statuses: dict[str, str] = {}
        self.steps: tuple[PlanStep, ...] = ()
        self.has_lead = False

    def on_event(self, envelope: Envelope) -> None:
        """Update the plan from one event."""
        match envelope.event:
            case RunStarted():
                self._titles, self._statuses, self.steps, self.has_lead = {}, {}, (), False
            case PlanUpdated(steps=steps):
                self.steps = tuple(step for step in steps if step.id != LEAD)
                self.has_lead = len(self.steps) < len(steps)
                self._titles |= {step.id: step.title for step in steps}
            case StepStarted():
                self._statuses[envelope.step_id or ""] = "running"
            case StepCompleted(status=status):
                self._statuses[envelope.step_id or ""] = status
            case _:
                pass

    def title(self, step: str) -> str:
        """Return the title of a step, even if a later plan dropped it."""
        return self._titles.get(step, "")

    def status(self, step: str) -> str:
        """Return the status of a step; empty if it has not started."""
        return self._statuses.get(step, "")

    def count_status(self, status: str) -> int:
        """Return how many steps have this status, without the lead."""
        return sum(status == now for step, now in self._statuses.items() if step != LEAD)

    def lines(
        self, width: int, *, is_final: bool = False, max_steps: int | None = None, more_hint: str = ""
    ) -> list[str]:
        """Draw the plan with current statuses, or only with final ones."""
        statuses = {step: now for step, now in self._statuses.items() if not (is_final and now == "running")}
        return graph_lines(
            self.steps, width=width, paint=self._paint, statuses=statuses, max_steps=max_steps, more_hint=more_hint
        )
