"""Where a run stands: its plan, how its steps ended, and what the rest of the plan becomes."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence

from agent.execution.graph.plan_revision import progress_text, revise_plan
from agent.execution.graph.scheduler import Scheduler
from agent.protocol.channel import Channel
from agent.protocol.events import PlanMade
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import COMPLETE, STREAMING, PlanStep
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage
from tooling.contract.json_codec import encode

# A plan that grows is announced for each of its first steps, then only when it has grown by a quarter or when nobody
# has announced it for a moment: every announcement holds all of it.
_EAGER_REVISIONS = 8
_ANNOUNCE_DELAY_S = 0.25
# A planner that has written its last step has nearly ended its reply: then a step goes on with its connection.
_COMPLETION_WAIT_S = 0.02


class PlanLog:
    """Knows every step that is or was in the plan; a step is announced before it starts."""

    def __init__(self, *, channel: Channel, max_steps: int, spent: Callable[[], Usage] = Usage) -> None:
        self._channel = channel
        self._spent = spent
        self._max_steps = max_steps
        self._all_steps: dict[str, PlanStep] = {}
        self._steps: list[PlanStep] = []
        self._announced: set[str] = set()
        self._announcement = asyncio.Event()
        self._revision = 0
        self.completed = asyncio.Event()
        self.plan_id: str | None = None
        self.over_limit: set[str] = set()

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """Return the plan."""
        return tuple(self._steps)

    @property
    def all_steps(self) -> tuple[PlanStep, ...]:
        """Return the plan and the steps that have left it after they ran, in the order in which they came."""
        return tuple(self._all_steps.values())

    def add(self, step: PlanStep) -> bool:
        """Take a step in; False when it is beyond the limit: it belongs to the plan, and is not run."""
        has_room = self.remaining_capacity(()) > 0
        if not has_room:
            self.over_limit.add(step.id)
        self._all_steps[step.id] = step
        self._steps.append(step)
        return has_room

    async def wait_announced(self, step_id: str) -> None:
        """Return when everybody could hear of a step before hearing that it starts."""
        if not self.completed.is_set():
            await _wait_up_to(_COMPLETION_WAIT_S, self.completed)
        if step_id not in self._announced and not self._should_announce():
            await _wait_up_to(_ANNOUNCE_DELAY_S, self._announcement)
        if step_id not in self._announced:
            self._announce(STREAMING)

    def complete(self, reason: str) -> None:
        """Announce that the plan is whole; `reason` when it is so from the beginning."""
        self.completed.set()
        if self._steps:
            self._announce(COMPLETE if self._revision else reason)

    def remaining_capacity(self, dropped: Collection[str]) -> int:
        """Return how many steps may still come in the place of those that are `dropped`."""
        leaving = sum(step_id in self._all_steps for step_id in dropped)
        return max(0, self._max_steps - (len(self._all_steps) - len(self.over_limit) - leaving))

    def revise(self, steps: Sequence[PlanStep], dropped: Collection[str], reason: str, diff: str) -> None:
        """Put another plan in the place of this one; what was `dropped` never ran and is forgotten."""
        for step_id in dropped:
            self._all_steps.pop(step_id, None)
        self._all_steps.update((step.id, step) for step in steps)
        self._steps = list(steps)
        self._announce(reason, diff)

    def confirm(self, reason: str) -> None:
        """Announce that the plan stays as it is."""
        self._announce(reason)

    def _should_announce(self) -> bool:
        fresh = len(self._steps) - len(self._announced)
        return self._revision < _EAGER_REVISIONS or fresh * 4 >= len(self._announced)

    def _announce(self, reason: str, diff: str | None = None) -> None:
        self._announced = {step.id for step in self._steps}
        self._announcement.set()
        self._announcement = asyncio.Event()
        self._revision += 1
        digest = hashlib.sha256(json.dumps(encode(self.steps), sort_keys=True).encode()).hexdigest()
        self.plan_id = self.plan_id or f"plan-{digest[:8]}"
        made = PlanMade(
            plan_id=self.plan_id,
            revision=self._revision,
            hash=digest[:16],
            reason=reason,
            steps=self.steps,
            diff=diff,
            spent=spent if (spent := self._spent()).requests else None,
        )
        # Not waited for: it reaches the disk before the start of the step it is told for, which is.
        self._channel.emit(made)


async def _wait_up_to(seconds: float, event: asyncio.Event) -> None:
    """Wait for something, and no longer than that."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass


# Why a step is not run that is one too many.
OVER_LIMIT = "the plan has more steps than its limit"


class RunState:
    """What planner, scheduler and composer all have to know of a run."""

    def __init__(self, *, plan_log: PlanLog, scheduler: Scheduler) -> None:
        self.plan_log = plan_log
        self.scheduler = scheduler
        self.replaced: set[str] = set()
        self._responses: dict[str, ExecutorResponse] = {}
        self._answers: list[str] = []

    @property
    def results(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        """Return the steps that have ended, in the plan's order."""
        return [(step, self._responses[step.id]) for step in self.plan_log.all_steps if step.id in self._responses]

    @property
    def effective_responses(self) -> list[ExecutorResponse]:
        """Return the responses that decide how the run ends: all but those that others have made good."""
        return [response for step, response in self.results if step.id not in self.replaced]

    @property
    def waiting(self) -> list[PlanStep]:
        """Return the steps that have not started."""
        return [step for step in self.plan_log.steps if self.scheduler.is_unstarted(step.id)]

    @property
    def unfinished(self) -> list[PlanStep]:
        """Return the steps of the plan that were cut off, could not be paid for, or never ran."""
        ended = {step.id for step, response in self.results if not _is_cut_off(response)}
        return [step for step in self.plan_log.steps if step.id not in ended]

    def response_of(self, step_id: str) -> ExecutorResponse | None:
        """Return how a step ended, if it has."""
        return self._responses.get(step_id)

    def record(self, response: ExecutorResponse) -> None:
        """Keep how a step ended."""
        self._responses[response.task_id] = response

    def record_answer(self, question: str, answer: str) -> None:
        """Keep what the person said: from now on it belongs to the request."""
        self._answers.append(f"Question: {question}\nAnswer: {answer}")

    def full_request(self, request: str) -> str:
        """Return the request with everything that was said to it since."""
        return "\n\n".join((request, *self._answers))

    def progress(self) -> str:
        """Return how far the work is, for a planner."""
        waiting = self.waiting
        idle = {step.id for step in waiting} | self._responses.keys()
        return progress_text(self.results, [step for step in self.plan_log.steps if step.id not in idle], waiting)

    def revise(
        self, planned_again: Sequence[PlanStep], reason: str, leaving: Mapping[str, PlanStep] | None = None
    ) -> bool:
        """Make the rest of the plan another one; False when it stays as it is.

        Steps that are `leaving` have failed. A question leaves for any plan that does without its answer, other steps
        only for one in which somebody does their work.
        """
        leaving = leaving or {}
        plan, waiting = self.plan_log.steps, {step.id for step in self.waiting}
        used = {step.id: step for step in self.plan_log.all_steps if step.id not in waiting}
        revision = revise_plan(plan, planned_again, waiting=waiting, used=used, leaving=leaving)
        if not revision.has_new_work and any(step.type != "ask_user" for step in leaving.values()):
            leaving = {}
            revision = revise_plan(plan, planned_again, waiting=waiting, used=used, leaving=leaving)
        if not revision.diff:
            return False
        room = self.plan_log.remaining_capacity(waiting)
        within, beyond = revision.unstarted[:room], revision.unstarted[room:]
        self.plan_log.over_limit |= {step.id for step in beyond}
        self.replaced |= leaving.keys()
        self.plan_log.revise(revision.steps, waiting, reason, revision.diff)
        self.scheduler.revise(within, [(step, OVER_LIMIT) for step in beyond])
        return True


def _is_cut_off(response: ExecutorResponse) -> bool:
    return response.status in ("cancelled", "skipped") or response.exit_code == exit_codes.BUDGET
