"""Where a run stands: its plan, how its steps ended, and what the rest of the plan becomes."""

from collections.abc import Mapping, Sequence

from agent.execution.graph.plan_revision import revised
from agent.execution.graph.scheduler import Scheduler
from agent.execution.plan_book import PlanBook
from agent.execution.progress import progress_text
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse

# Why a step is not run that is one too many.
BEYOND = "the plan has more steps than its limit"


class Board:
    """What planner, scheduler and composer all have to know of a run."""

    def __init__(self, *, book: PlanBook, scheduler: Scheduler) -> None:
        self.book = book
        self.scheduler = scheduler
        self.replaced: set[str] = set()
        self._responses: dict[str, ExecutorResponse] = {}
        self._answers: list[str] = []

    @property
    def results(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        """Return the steps that have ended, in the plan's order."""
        return [(step, self._responses[step.id]) for step in self.book.known if step.id in self._responses]

    @property
    def counted(self) -> list[ExecutorResponse]:
        """Return the responses that decide how the run ends: all but those that others have made good."""
        return [response for step, response in self.results if step.id not in self.replaced]

    @property
    def waiting(self) -> list[PlanStep]:
        """Return the steps that have not started."""
        return [step for step in self.book.steps if self.scheduler.is_unstarted(step.id)]

    @property
    def unfinished(self) -> list[PlanStep]:
        """Return the steps of the plan that were cut off, could not be paid for, or never ran."""
        ended = {step.id for step, response in self.results if not _is_cut_off(response)}
        return [step for step in self.book.steps if step.id not in ended]

    def response_of(self, step_id: str) -> ExecutorResponse | None:
        """Return how a step ended, if it has."""
        return self._responses.get(step_id)

    def note(self, response: ExecutorResponse) -> None:
        """Keep how a step ended."""
        self._responses[response.task_id] = response

    def note_answer(self, question: str, answer: str) -> None:
        """Keep what the person said: from now on it belongs to the request."""
        self._answers.append(f"Question: {question}\nAnswer: {answer}")

    def asked(self, request: str) -> str:
        """Return the request with everything that was said to it since."""
        return "\n\n".join((request, *self._answers))

    def progress(self) -> str:
        """Return how far the work is, for a planner."""
        waiting = self.waiting
        idle = {step.id for step in waiting} | self._responses.keys()
        return progress_text(self.results, [step for step in self.book.steps if step.id not in idle], waiting)

    def revise(
        self, planned_again: Sequence[PlanStep], reason: str, leaving: Mapping[str, PlanStep] | None = None
    ) -> bool:
        """Make the rest of the plan another one; False when it stays as it is.

        Steps that are `leaving` have failed. A question leaves for any plan that does without its answer, other steps
        only for one in which somebody does their work.
        """
        leaving = leaving or {}
        plan, waiting = self.book.steps, {step.id for step in self.waiting}
        used = {step.id: step for step in self.book.known if step.id not in waiting}
        revision = revised(plan, planned_again, waiting=waiting, used=used, leaving=leaving)
        if not revision.brings_work and any(step.type != "ask_user" for step in leaving.values()):
            leaving = {}
            revision = revised(plan, planned_again, waiting=waiting, used=used, leaving=leaving)
        if not revision.diff:
            return False
        room = self.book.room_beside(waiting)
        within, beyond = revision.rest[:room], revision.rest[room:]
        self.book.beyond |= {step.id for step in beyond}
        self.replaced |= leaving.keys()
        self.book.revise(revision.steps, waiting, reason, revision.diff)
        self.scheduler.revise(within, [(step, BEYOND) for step in beyond])
        return True


def _is_cut_off(response: ExecutorResponse) -> bool:
    return response.status in ("cancelled", "skipped") or response.exit_code == exit_codes.BUDGET
