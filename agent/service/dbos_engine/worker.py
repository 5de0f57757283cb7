"""The worker: claims tasks, runs them through a handler, takes over tasks of dead workers, and cleans up.

DBOS uses its own threads; our code runs in the event loop of the caller of `work`.
"""

import asyncio
import concurrent.futures
import contextlib
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dbos import DBOS, DBOSConfig

from agent.service.dbos_engine.database import (
    APPLICATION,
    APPLICATION_VERSION,
    SERIALIZER,
    QueueDatabase,
    one_at_a_time,
)
from agent.service.dbos_engine.liveness import Liveness, new_worker
from agent.service.dbos_engine.private_api import limit_claims, stop_claims, take_over
from agent.service.dbos_engine.queue import DbosTasks, wake_file
from agent.service.dbos_engine.records import (
    ATTEMPT,
    BUSY,
    END,
    ERROR,
    FIRE_WORKFLOW,
    OUTCOME,
    RETRY_AT,
    STARTED,
    TASK_WORKFLOW,
    as_json,
    queue_of,
)
from agent.service.dbos_engine.schedules import task_id_of
from agent.service.dbos_engine.slots import Slots
from agent.service.dbos_engine.task_workflow import register_workflows
from agent.service.engine import TaskHandler, WorkOptions
from agent.service.new_request import fired_request
from agent.service.task import ScheduleMode, Task, TaskOutcome, TaskRequest, TaskState
from agent.vocabulary.errors import AgentError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, decode, encode

T = TypeVar("T")
# Polling interval of DBOS for a queue; `_room` decides whether the database is then queried.
_POLL_S = 0.5
_WATCH_S = 0.5
_CLEAN_EVERY_S = 3600.0
# Workflows without a live worker and without a file or row of one, such as after a restored backup.
_ORPHANS_EVERY_S = 15.0
_DELETE_AT_ONCE = 500
LOST_LEASE = "this worker was silent for too long, and others have taken over its tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRules:
    """Settings of a worker: `intervals` are the polling intervals of the queues in seconds, by mode.

    `is_open` returns whether tasks of a mode may start now. `lease_s` is how long a silent worker keeps its tasks.
    """

    attempts: int
    delay_s: float
    lease_s: float
    retention_days: float
    intervals: Mapping[ScheduleMode, float]
    is_open: Callable[[ScheduleMode], bool]


class DbosWorker:
    """Runs tasks in this process; `log` receives a line for every change of a task."""

    def __init__(
        self,
        database: QueueDatabase,
        tasks: DbosTasks,
        liveness: Liveness,
        rules: WorkerRules,
        log: Callable[[str, Mapping[str, object]], None] = lambda event, facts: None,
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._liveness = liveness
        self._rules = rules
        self._log = log
        self.worker_id = f"{socket.gethostname()}-{secrets.token_hex(4)}"
        self._slots = Slots(1)
        self._running: dict[str, asyncio.Task[TaskOutcome]] = {}
        self._canceled: set[str] = set()
        self._modes: dict[str, ScheduleMode] = {}
        # Time of the next poll of a queue, and the mtime of the wake file at the last one.
        self._next_look: dict[str, float] = {}
        self._seen_wake: dict[str, int] = {}
        self._empty: set[str] = set()
        self._ended = 0
        self._is_draining = self._hands_back = False
        self._stopping = asyncio.Event()
        self._renewed_at = time.monotonic()
        self._takes_over_from = 0.0
        self._dbos: DBOS | None = None

    async def work(self, handler: TaskHandler, options: WorkOptions) -> int:
        """Run tasks until `stop` is called, or with `is_once` until no task can start."""
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._slots = Slots(options.concurrency)
        self._modes = {queue_of(mode): mode for mode in options.modes}
        self._is_once, self._tasks.is_patient = options.is_once, True
        facts = new_worker(self.worker_id, socket.gethostname(), options.concurrency, options.modes)
        # Before the launch, because a task may be claimed at once.
        await asyncio.to_thread(self._liveness.register, facts)
        self._renewed_at = time.monotonic()
        try:
            await asyncio.to_thread(self._launch)
            await self._watch()
        finally:
            await self._shut_down()
        return self._ended

    async def stop(self, *, hands_back: bool = False) -> None:
        """Start no more tasks; with `hands_back` stop the running ones and return them to the queue."""
        self._is_draining = True
        if hands_back:
            self._hands_back, self._tasks.is_patient = True, False
        self._stopping.set()

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._database.engine,
            "system_database_url": self._database.address,
            "application_version": APPLICATION_VERSION,
            "executor_id": self.worker_id,
            "serializer": SERIALIZER,
            "log_level": "WARNING",
            "scheduler_polling_interval_sec": 5.0,
            "enable_otlp": False,
        }
        self._dbos = dbos = DBOS(config=config)
        register_workflows(self)
        DBOS.listen_queues(list(self._modes))
        with one_at_a_time(self._database):
            DBOS.launch()
            limit_claims(dbos, self._room, self._claimed)
            for queue in self._modes:
                DBOS.register_queue(queue, polling_interval_sec=_POLL_S)

    async def _watch(self) -> None:
        """Monitor running tasks, this worker's lease and the tasks of dead workers until there is nothing to do."""
        next_renewal = next_clean = next_orphans = 0.0
        while not await self._is_finished():
            now = time.monotonic()
            if now >= next_renewal:
                next_renewal = now + self._rules.lease_s / 3
                await self._renew()
            await self._ask(self._take_over_dead, None, now >= next_orphans)
            next_orphans = now + _ORPHANS_EVERY_S if now >= next_orphans else next_orphans
            await self._end_canceled()
            if now >= next_clean and not self._is_once:
                next_clean = now + _CLEAN_EVERY_S
                await self._ask(self._delete_old, None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH_S):
                    await (self._stopping.wait() if not self._is_draining else asyncio.sleep(_WATCH_S))

    async def _renew(self) -> None:
        """Extend the lease of this worker."""
        if not await self._ask(self._liveness.renew, True, self.worker_id):
            raise AgentError(LOST_LEASE, "nothing is lost; start the worker again")
        now = time.monotonic()
        if now - self._renewed_at > self._rules.lease_s:
            # The database was away, possibly for all workers: the others get the time to renew their leases, too.
            self._takes_over_from = now + self._rules.lease_s
        self._renewed_at = now

    async def _ask(self, function: Callable[..., T], otherwise: T, *args: object) -> T:
        """Call a function that uses the database in a thread; return `otherwise` if the database is unreachable."""
        try:
            return await self._tasks.call(function, *args)
        except AgentError as error:
            self._log("queue.unreachable", {"level": "warning", "message": error.message})
            return otherwise

    async def _is_finished(self) -> bool:
        if self._hands_back:
            return True
        if self._is_draining:
            return not self._slots.held
        return self._is_once and not self._slots.held and self._empty >= set(self._modes)

    async def _shut_down(self) -> None:
        """Stop the running tasks, return them to the queue, and shut down."""
        self._tasks.is_patient = False
        if self._dbos:
            await asyncio.to_thread(stop_claims, self._dbos)
        for attempt in self._running.values():
            attempt.cancel()
        if self._running:
            await asyncio.wait(list(self._running.values()))
        if self._slots.held or self._running:
            with contextlib.suppress(AgentError):
                await self._tasks.call(take_over, [self.worker_id])
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
        with contextlib.suppress(AgentError):
            await self._tasks.call(self._liveness.remove, self.worker_id)

    def _room(self, queue: str) -> int | None:
        """Return the number of tasks of a queue that may be claimed; DBOS calls it in a thread before every claim."""
        mode = self._modes.get(queue)
        if mode is None:
            return None
        if self._is_draining or not self._rules.is_open(mode):
            self._empty.add(queue)
            return 0
        now, wake = time.monotonic(), self._wake_time()
        if not self._is_once and now < self._next_look.get(queue, 0.0) and wake == self._seen_wake.get(queue):
            return 0
        free = self._slots.free()
        if free > 0:
            self._next_look[queue], self._seen_wake[queue] = now + self._rules.intervals[mode], wake
        return free

    def _wake_time(self) -> int:
        try:
            return wake_file(self._database).stat().st_mtime_ns
        except OSError:
            return 0

    def _claimed(self, queue: str, task_ids: Sequence[str]) -> None:
        if not task_ids:
            self._empty.add(queue)
            return
        self._empty.clear()
        # The queue may hold more tasks than there were slots for.
        self._next_look[queue] = 0.0
        self._slots.claim(task_ids)

    def _take_over_dead(self, finds_orphans: bool) -> None:  # noqa: FBT001 (called through a thread)
        now = time.monotonic()
        if now < self._takes_over_from or now - self._renewed_at > self._rules.lease_s:
            return
        # Read before the workers: who holds a task has registered before.
        holders = {row.executor_id for row in self._tasks.rows("PENDING")} if finds_orphans else set()
        workers = self._liveness.workers()
        known = {worker.worker_id for worker in workers}
        silent = [worker.worker_id for worker in workers if not worker.is_alive]
        # If this process dies now, the tasks have no worker, and are found as orphans.
        dead = [worker_id for worker_id in silent if self._liveness.remove_dead(worker_id)]
        dead += sorted(worker_id for worker_id in holders if worker_id and worker_id not in known)
        if dead and (count := take_over(dead)):
            tasks = "1 task" if count == 1 else f"{count} tasks"
            self._log("worker.taken_over", {"level": "warning", "message": f"{tasks} of {', '.join(dead)}"})

    async def _end_canceled(self) -> None:
        """Stop the attempts of tasks that were canceled or taken over by another worker."""
        if not self._running:
            return
        unknown: dict[str, tuple[str, str]] = {}
        rows = await self._ask(self._states_of, unknown, sorted(self._running))
        for task_id, (status, worker_id) in rows.items():
            if (status != "PENDING" or worker_id != self.worker_id) and (attempt := self._running.get(task_id)):
                self._canceled.add(task_id)
                attempt.cancel()

    def _states_of(self, task_ids: list[str]) -> dict[str, tuple[str, str]]:
        found = self._tasks.rows_of(task_ids)
        return {row.workflow_id: (row.status, row.executor_id or "") for row in found}

    def _delete_old(self) -> None:
        """Delete tasks that ended long ago, and schedule records of past days."""
        now = datetime.now(UTC)
        for name, days in ((TASK_WORKFLOW, self._rules.retention_days), (FIRE_WORKFLOW, 1.0)):
            before = (now - timedelta(days=days)).isoformat()
            while old := self._tasks.ended_before(name, before, _DELETE_AT_ONCE):
                DBOS.delete_workflows([row.workflow_id for row in old])

    # The steps of a task; DBOS calls them from its own event loop and threads.

    def plan_attempts(self, task_id: str) -> JsonObject:
        return {"attempts": self._rules.attempts, "delay_s": self._rules.delay_s}

    async def run_attempt(self, task_id: str, attempt: int) -> JsonObject:
        return await self._in_our_loop(self._run_attempt(task_id, attempt))

    async def wait_for_slot(self, task_id: str) -> None:
        # Polled: slots are released in threads of DBOS, which have no event loop.
        while not self._slots.enter(task_id):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)

    def release_slot(self, task_id: str) -> None:
        self._slots.release(task_id)

    def fire(self, name: str, request: JsonObject, at: str) -> str:
        fired_at = datetime.fromisoformat(at)
        fired = fired_request(decode(TaskRequest, request, extra="ignore"), name, datetime.now(UTC))
        task = self._tasks.submit_now(fired, task_id_of(name, fired_at))
        self._tell("task.created", task, f"by the schedule {name}")
        return task.task_id

    def _in_our_loop(self, work: Coroutine[object, object, T]) -> Awaitable[T]:
        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return asyncio.wrap_future(future)

    async def _run_attempt(self, task_id: str, attempt: int) -> JsonObject:
        task = await self._tasks.get(task_id)
        noted = {STARTED: encode(task.started_at or datetime.now(UTC)), ATTEMPT: attempt, BUSY: True, RETRY_AT: None}
        await self._tasks.call(self._tasks.note, task_id, noted)
        task = await self._tasks.get(task_id)
        self._tell("task.started", task, f"attempt {attempt} on {self.worker_id}")
        running = self._running[task_id] = asyncio.ensure_future(self._handler.run(task))
        try:
            await asyncio.wait([running])
        finally:
            del self._running[task_id]
        if running.cancelled():
            return await self._end_cancelled(task)
        return await self._record(task, _outcome(running))

    async def _end_cancelled(self, task: Task) -> JsonObject:
        """Record that nothing of a task runs here any more; a task returned to the queue must not get a result."""
        if task.task_id not in self._canceled:
            self._tell("task.handed_back", task, "the worker ends")
            await self._ask(self._tasks.note, None, task.task_id, {BUSY: False})
            await asyncio.Event().wait()
        self._canceled.discard(task.task_id)
        await self._ask(self._tasks.note, None, task.task_id, {BUSY: False})
        self._tell("task.canceled", task, "")
        return {"is_done": True, "may_retry": False, "error": ""}

    async def _record(self, task: Task, outcome: TaskOutcome) -> JsonObject:
        now = datetime.now(UTC)
        is_done = outcome.state is TaskState.COMPLETED
        is_tried_again = not is_done and outcome.is_transient and task.attempt < self._rules.attempts
        next_at = now + timedelta(seconds=self._rules.delay_s) if is_tried_again else None
        facts = {
            BUSY: False,
            ERROR: outcome.error or None,
            OUTCOME: dict(as_json(outcome)),
            END: encode(now),
            RETRY_AT: encode(next_at),
        }
        await self._tasks.call(self._tasks.note, task.task_id, facts)
        self._ended += not is_tried_again
        if next_at:
            again = (
                f"attempt {task.attempt} of {self._rules.attempts} failed; the next one is at {next_at:%H:%M:%S} UTC"
            )
            self._tell("task.retrying", task, f"{again}: {outcome.error}")
        else:
            self._tell("task.completed" if is_done else "task.failed", task, outcome.error)
        return {"is_done": is_done, "may_retry": outcome.is_transient, "error": outcome.error}

    def _tell(self, event: str, task: Task, message: str) -> None:
        facts = {"task_id": task.task_id, "session_id": task.session_id, "trace_id": task.request.trace_id}
        self._log(event, {**facts, "message": message})


def _outcome(running: "asyncio.Task[TaskOutcome]") -> TaskOutcome:
    """Return the handler's outcome; an unexpected error fails the task, and another attempt may succeed."""
    error = running.exception()
    if error is None:
        return running.result()
    if not isinstance(error, Exception):
        raise error
    text = error.message if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
    code = error.exit_code if isinstance(error, AgentError) else 1
    return TaskOutcome(
        state=TaskState.FAILED, exit_code=code, error=text, is_transient=not isinstance(error, AgentError)
    )
