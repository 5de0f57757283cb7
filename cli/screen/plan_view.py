"""The newest plan of a run and where each of its steps stands: a fold over events, drawn when asked."""

from agent.protocol.events import Envelope, PlanMade, RunStarted, StepCompleted, StepStarted
from agent.vocabulary.plan import PlanStep
from cli.screen.colors import Paint
from cli.screen.plan_graph import graph_lines


class PlanView:
    """Knows the steps, their titles and how far they are."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._titles: dict[str, str] = {}
        self._statuses: dict[str, str] = {}
        self.steps: tuple[PlanStep, ...] = ()

    def on_event(self, envelope: Envelope) -> None:
        """Take in one event."""
        match envelope.event:
            case RunStarted():
                self._titles, self._statuses, self.steps = {}, {}, ()
            case PlanMade(steps=steps):
                self.steps = steps
                self._titles |= {step.id: step.title for step in steps}
            case StepStarted():
                self._statuses[envelope.step_id or ""] = "running"
            case StepCompleted(status=status):
                self._statuses[envelope.step_id or ""] = status
            case _:
                pass

    def title(self, step: str) -> str:
        """Return what a step of this run is called, also when a later plan no longer has it."""
        return self._titles.get(step, "")

    def lines(self, width: int) -> list[str]:
        """Draw the plan as it stands now."""
        return graph_lines(self.steps, width=width, paint=self._paint, statuses=self._statuses)
