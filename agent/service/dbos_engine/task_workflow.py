"""The durable workflows of the queue: a task with its attempts, and the firing of a schedule.

DBOS matches steps by number and name when it resumes a task. Therefore nothing outside of steps may use the clock,
random numbers or other external state. If the order of steps changes, raise
`APPLICATION_VERSION`.
"""

from datetime import datetime
from typing import Protocol

from dbos import DBOS

from agent.service.dbos_engine.records import FIRE_WORKFLOW, TASK_WORKFLOW
from tooling.contract.json_codec import JsonObject

# Number of takeovers after which a task counts as one that kills its workers.
_MAX_TAKEOVERS = 1000


class TaskFailed(Exception):
    """All attempts of a task failed; the message is stored as the error of the task."""


class TaskSteps(Protocol):
    """The steps of a task, implemented by the worker."""

    def plan_attempts(self, task_id: str) -> JsonObject:
        """Return `attempts` and `delay_s`; the numbers stay the same for all attempts of a task."""

    async def run_attempt(self, task_id: str, attempt: int) -> JsonObject:
        """Run a task once; return `is_done`, `may_retry` and `error`."""

    async def wait_for_slot(self, task_id: str) -> None:
        """Wait for a free slot and count the task as running."""

    def release_slot(self, task_id: str) -> None:
        """Stop counting a task as running."""

    def fire(self, name: str, request: JsonObject, at: str) -> str:
        """Create the task of one firing of a schedule; return its id."""


def register_workflows(steps: TaskSteps) -> None:
    """Register the functions for tasks and schedules with DBOS; call before its launch."""

    @DBOS.step(name="plan the attempts")
    def plan_attempts(task_id: str) -> JsonObject:
        return steps.plan_attempts(task_id)

    @DBOS.step(name="run the task")
    async def run_attempt(task_id: str, attempt: int) -> JsonObject:
        return await steps.run_attempt(task_id, attempt)

    @DBOS.step(name="create the task of a schedule")
    def fire(name: str, request: JsonObject, at: str) -> str:
        return steps.fire(name, request, at)

    @DBOS.workflow(name=TASK_WORKFLOW, max_recovery_attempts=_MAX_TAKEOVERS)
    async def run_task(request: JsonObject) -> None:
        task_id = DBOS.workflow_id or ""
        try:
            plan = plan_attempts(task_id)
            attempts = int(str(plan["attempts"]))
            for attempt in range(1, attempts + 1):
                await steps.wait_for_slot(task_id)
                result = await run_attempt(task_id, attempt)
                if result["is_done"]:
                    return
                if attempt == attempts or not result["may_retry"]:
                    raise TaskFailed(str(result["error"]))
                steps.release_slot(task_id)
                await DBOS.sleep_async(float(str(plan["delay_s"])))
        finally:
            steps.release_slot(task_id)

    @DBOS.workflow(name=FIRE_WORKFLOW)
    def fire_schedule(scheduled_at: datetime | str, context: JsonObject) -> str:
        request = context["request"]
        if not isinstance(request, dict):
            raise TaskFailed("the schedule has no request")
        return fire(str(context["name"]), request, str(scheduled_at))
