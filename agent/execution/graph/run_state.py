"""The state of a run: its plan, the responses of its steps, and revisions of the plan."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count

from agent.execution.graph.plan_revision import progress_text, revise_plan
from agent.execution.graph.scheduler import Scheduler
from agent.protocol.channel import Channel
from agent.protocol.events import PlanUpdated
from agent.vocabulary import exit_codes
from agent.vocabulary.plan import COMPLETE, LEAD, STREAMING, PlanStep
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage
from tooling.contract.json_codec import encode

# Every announcement contains the complete plan. A streaming plan is therefore announced for each of its first steps,
# then only once it has grown by a quarter or a step has waited briefly.
_EAGER_REVISIONS = 8
_ANNOUNCE_DELAY_S = 0.25
# A planner that has written its last step is about to finish its reply; the step can then reuse its connection.
_COMPLETION_WAIT_S = 0.02


class PlanLog:
    """Every step that is or was in the plan; a step is announced before it starts."""

    def __init__(self, *, channel: Channel, max_steps: int, spent: Callable[[], Usage] = Usage) -> None:
        self._channel = channel
        self._spent = spent
        self._max_steps = max_steps
        self._all_steps: dict[str, PlanStep] = {}
        # Order of arrival, so that a few steps can be sorted without scanning all.
        self._numbers: dict[str, int] = {}
        self._arrivals = count()
        self._steps: list[PlanStep] = []
        self._announced: set[str] = set()
        self._announcement = asyncio.Event()
        self._revision = 0
        self.completed = asyncio.Event()
        self.plan_id: str | None = None
        self.over_limit: set[str] = set()

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        return tuple(self._steps)

    @property
    def all_steps(self) -> tuple[PlanStep, ...]:
        """The steps of the plan and those removed from it after they ran, in order of arrival."""
        return tuple(self._all_steps.values())

    def add(self, step: PlanStep) -> bool:
        """Add a step; return False if it exceeds the limit: it is part of the plan but must not run."""
        has_room = self.remaining_capacity(()) > 0
        if not has_room:
            self.over_limit.add(step.id)
        self._remember((step,))
        self._steps.append(step)
        return has_room

    def sorted_steps(self, ids: Iterable[str]) -> list[PlanStep]:
        """Return those of the steps that are or were in the plan, in order of arrival."""
        known = {step_id for step_id in ids if step_id in self._all_steps}
        return [self._all_steps[step_id] for step_id in sorted(known, key=self._numbers.__getitem__)]

    async def wait_announced(self, step_id: str) -> None:
        """Wait until a plan that contains the step has been emitted."""
        if not self.completed.is_set():
            await _wait_up_to(_COMPLETION_WAIT_S, self.completed)
        if step_id not in self._announced and not self._should_announce():
            await _wait_up_to(_ANNOUNCE_DELAY_S, self._announcement)
        if step_id not in self._announced:
            self._announce(STREAMING)

    def complete(self, reason: str) -> None:
        """Announce the complete plan; `reason` is used if nothing was announced before."""
        self.completed.set()
        if self._steps:
            self._announce(COMPLETE if self._revision else reason)

    def remaining_capacity(self, dropped: Collection[str]) -> int:
        """Return how many steps may be added once those in `dropped` are removed."""
        leaving = sum(step_id in self._all_steps for step_id in dropped)
        # The lead is not counted.
        staying = len(self._all_steps) - (LEAD in self._all_steps) - len(self.over_limit) - leaving
        return max(0, self._max_steps - staying)

    def revise(self, steps: Sequence[PlanStep], dropped: Collection[str], reason: str, diff: str) -> None:
        """Replace the plan; the `dropped` steps never ran and are forgotten."""
        for step_id in dropped:
            self._all_steps.pop(step_id, None)
        self._remember(steps)
        self._steps = list(steps)
        self._announce(reason, diff)

    def confirm(self, reason: str) -> None:
        """Announce the unchanged plan again, with a new reason."""
        self._announce(reason)

    def _remember(self, steps: Iterable[PlanStep]) -> None:
        for step in steps:
            if step.id not in self._all_steps:
                self._numbers[step.id] = next(self._arrivals)
            self._all_steps[step.id] = step

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
        event = PlanUpdated(
            plan_id=self.plan_id,
            revision=self._revision,
            hash=digest[:16],
            reason=reason,
            steps=self.steps,
            diff=diff,
            spent=spent if (spent := self._spent()).requests else None,
        )
        # Not awaited: it reaches the disk before the start of its step, which is awaited.
        self._channel.emit(event)


async def _wait_up_to(seconds: float, event: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass


# Why a step beyond the limit is skipped.
OVER_LIMIT = "the plan exceeds its step limit"


class RunState:
    """The state that planner, scheduler and composer share."""

    def __init__(self, *, plan_log: PlanLog, scheduler: Scheduler) -> None:
        self.plan_log = plan_log
        self.scheduler = scheduler
        self.replaced: set[str] = set()
        # Set whenever a step ends.
        self.changed = asyncio.Event()
        self.lead_ended = asyncio.Event()
        self._responses: dict[str, ExecutorResponse] = {}
        self._answers: list[str] = []

    @property
    def results(self) -> list[tuple[PlanStep, ExecutorResponse]]:
        """The steps that have ended with their responses, in plan order."""
        return [(step, self._responses[step.id]) for step in self.plan_log.all_steps if step.id in self._responses]

    def results_of(self, ids: Iterable[str]) -> list[tuple[PlanStep, ExecutorResponse]]:
        """Return those of the steps that have ended with their responses, in plan order."""
        ended = (step_id for step_id in ids if step_id in self._responses)
        return [(step, self._responses[step.id]) for step in self.plan_log.sorted_steps(ended)]

    @property
    def effective_responses(self) -> list[ExecutorResponse]:
        """The responses that decide the outcome: all except those of replaced steps."""
        return [response for step, response in self.results if step.id not in self.replaced]

    @property
    def waiting(self) -> list[PlanStep]:
        """The steps that have not started."""
        return [step for step in self.plan_log.steps if self.scheduler.is_unstarted(step.id)]

    @property
    def unfinished(self) -> list[PlanStep]:
        """The steps of the plan that were interrupted, exceeded the budget, or never ran."""
        ended = {step.id for step, response in self.results if not _is_cut_off(response)}
        return [step for step in self.plan_log.steps if step.id not in ended]

    def response_of(self, step_id: str) -> ExecutorResponse | None:
        return self._responses.get(step_id)

    def record(self, response: ExecutorResponse) -> None:
        """Store the response of a step."""
        self._responses[response.task_id] = response
        self.changed.set()
        if response.task_id == LEAD:
            self.lead_ended.set()

    def record_answer(self, question: str, answer: str) -> None:
        """Add a user's answer to the request."""
        self._answers.append(f"Question: {question}\nAnswer: {answer}")

    def full_request(self, request: str) -> str:
        """Return the request with all answers given since."""
        return "\n\n".join((request, *self._answers))

    def progress(self) -> str:
        """Return the progress of the run, for a planner."""
        waiting = self.waiting
        idle = {step.id for step in waiting} | self._responses.keys()
        return progress_text(self.results, [step for step in self.plan_log.steps if step.id not in idle], waiting)

    def revise(
        self, replanned: Sequence[PlanStep], reason: str, replaced: Mapping[str, PlanStep] | None = None
    ) -> bool:
        """Replace the steps that have not started by the replanned ones; return False if nothing changes.

        The `replaced` steps have failed. A question is replaced by any plan that does not need its answer, other steps
        only by a plan with new work.
        """
        replaced = replaced or {}
        plan, waiting = self.plan_log.steps, {step.id for step in self.waiting}
        used = {step.id: step for step in self.plan_log.all_steps if step.id not in waiting}
        revision = revise_plan(plan, replanned, waiting=waiting, used=used, replaced=replaced)
        if not revision.has_new_work and any(step.type != "ask_user" for step in replaced.values()):
            replaced = {}
            revision = revise_plan(plan, replanned, waiting=waiting, used=used, replaced=replaced)
        if not revision.diff:
            return False
        capacity = self.plan_log.remaining_capacity(waiting)
        within, over = revision.unstarted[:capacity], revision.unstarted[capacity:]
        self.plan_log.over_limit |= {step.id for step in over}
        self.replaced |= replaced.keys()
        self.plan_log.revise(revision.steps, waiting, reason, revision.diff)
        self.scheduler.revise(within, [(step, OVER_LIMIT) for step in over])
        return True


def _is_cut_off(response: ExecutorResponse) -> bool:
    return response.status in ("cancelled", "skipped") or response.exit_code == exit_codes.BUDGET
