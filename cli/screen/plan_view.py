"""The current plan of a run and the status of its steps, folded from events."""

from agent.protocol.events import Envelope, PlanUpdated, RunStarted, StepCompleted, StepStarted
from agent.vocabulary.plan import PlanStep
from cli.screen.colors import Paint
from cli.screen.plan_graph import graph_lines


class PlanView:
    """Tracks the steps of a run, their titles and statuses."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._titles: dict[str, str] = {}
        self._statuses: dict[str, str] = {}
        self.steps: tuple[PlanStep, ...] = ()

    def on_event(self, envelope: Envelope) -> None:
        """Update the plan from one event."""
        match envelope.event:
            case RunStarted():
                self._titles, self._statuses, self.steps = {}, {}, ()
            case PlanUpdated(steps=steps):
                self.steps = steps
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

    def count_status(self, status: str) -> int:
        return list(self._statuses.values()).count(status)

    def lines(self, width: int) -> list[str]:
        """Draw the plan with current statuses."""
        return graph_lines(self.steps, width=width, paint=self._paint, statuses=self._statuses)
