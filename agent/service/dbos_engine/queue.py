"""Tasks in DBOS: creating, reading and changing them from any process."""

import asyncio
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from dbos import DBOSClient, EnqueueOptions, WorkflowStatus

from agent.service.dbos_engine.database import SCHEMA, DatabaseUnreachable, QueueDatabase, database_errors
from agent.service.dbos_engine.liveness import Liveness
from agent.service.dbos_engine.records import (
    BUSY,
    CREATED,
    CURRENT,
    END,
    ERROR,
    OUTCOME,
    PROGRESS,
    QUESTION,
    RETRY_AT,
    SCHEDULE_SEPARATOR,
    STATUSES,
    TASK_WORKFLOW,
    as_json,
    engine_priority,
    queue_of,
    request_of,
    task_of,
)
from agent.service.task import (
    Task,
    TaskProgress,
    TaskQuery,
    TaskRequest,
    TaskState,
    check_transition,
)
from agent.vocabulary.errors import InputError
from tooling.contract.json_codec import encode

T = TypeVar("T")
_PAGE = 200
_RETRY_S = 1.0
_ID_BYTES = 5
_LIST_HINT = "`agent task list` shows them"


def new_task_id() -> str:
    """Return a unique id, short enough to be typed."""
    return f"t{secrets.token_hex(_ID_BYTES)}"


class DbosTasks:
    """Creates, reads and changes tasks. `now` is the clock for start times."""

    def __init__(
        self,
        database: QueueDatabase,
        client: DBOSClient,
        reader: DBOSClient,
        liveness: Liveness,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database = database
        self._client = client
        self._reader = reader
        self._liveness = liveness
        self._now = now
        self._table = "workflow_status" if database.is_sqlite else f"{SCHEMA}.workflow_status"
        # Whether to wait for an unreachable database, as a worker does: the runs of its tasks seldom need it.
        self.is_patient = False

    async def submit(self, request: TaskRequest, task_id: str = "") -> Task:
        return await self.call(self.submit_now, request, task_id or new_task_id())

    async def get(self, task_id: str) -> Task:
        return await self.call(lambda: task_of(self.find(task_id), self.alive()))

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        return await self.call(self._list, query)

    async def cancel(self, task_id: str) -> Task:
        return await self.call(self._cancel, task_id)

    async def retry(self, task_id: str) -> Task:
        return await self.call(self._retry, task_id)

    async def report(self, session_id: str, progress: TaskProgress) -> None:
        await self.call(self._report, session_id, progress)

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Call a function that uses the database in a thread; with `is_patient` wait for the database."""

        def checked() -> T:
            with database_errors(self._database):
                return function(*args)

        while True:
            try:
                return await asyncio.to_thread(checked)
            except DatabaseUnreachable:
                if not self.is_patient:
                    raise
                await asyncio.sleep(_RETRY_S)

    def find(self, task_id: str) -> WorkflowStatus:
        """Return the row of a task by its id or a unique beginning of it."""
        found = self._reader.list_workflows(workflow_ids=[task_id], name=TASK_WORKFLOW) if task_id else []
        if not found and task_id:
            found = self._reader.list_workflows(workflow_id_prefix=task_id, name=TASK_WORKFLOW, limit=2)
        if not found:
            raise InputError(f"there is no task {task_id!r}", _LIST_HINT)
        if len(found) > 1:
            raise InputError(f"{task_id!r} matches several tasks", "use a longer prefix of the id")
        return found[0]

    def rows(self, status: str, *, with_input: bool = False) -> Sequence[WorkflowStatus]:
        """Return the rows of all tasks with a status of the engine."""
        return self._reader.list_workflows(name=TASK_WORKFLOW, status=status, load_input=with_input, load_output=False)

    def asking(self) -> Sequence[WorkflowStatus]:
        """Return the rows of tasks that have asked something: running ones, and those that wait for another worker."""
        query = sa.text(
            f"SELECT workflow_uuid FROM {self._table} WHERE name = :name AND status IN ('PENDING', 'ENQUEUED') "
            "AND CAST(attributes AS text) LIKE :asked"
        )
        with self._database.reading.begin() as connection:
            found = connection.execute(query, {"name": TASK_WORKFLOW, "asked": f'%"{QUESTION}%'}).scalars().all()
        return self.rows_of(found) if found else ()

    def rows_of(self, task_ids: Sequence[str]) -> Sequence[WorkflowStatus]:
        """Return the rows of some tasks, without their requests."""
        return self._reader.list_workflows(workflow_ids=[*task_ids], load_input=False, load_output=False)

    def ended_before(self, name: str, time: str, limit: int) -> Sequence[WorkflowStatus]:
        """Return rows of a workflow that ended before a time, at most `limit`."""
        return self._reader.list_workflows(
            name=name, completed_before=time, limit=limit, load_input=False, load_output=False
        )

    def note(self, task_id: str, facts: dict[str, object]) -> None:
        """Store attributes of a task."""
        self._client.update_workflow_attributes(task_id, facts, merge=True)

    def alive(self) -> frozenset[str]:
        """Return the ids of the workers that are alive."""
        return frozenset(worker.worker_id for worker in self._liveness.workers() if worker.is_alive)

    def count(self) -> dict[str, int]:
        """Return the number of tasks by the status of the engine."""
        query = sa.text(f"SELECT status, count(*) FROM {self._table} WHERE name = :name GROUP BY status")
        with self._database.reading.begin() as connection:
            return {str(row[0]): int(row[1]) for row in connection.execute(query, {"name": TASK_WORKFLOW})}

    def submit_now(self, request: TaskRequest, task_id: str) -> Task:
        """Store a task; blocks this thread."""
        now = self._now()
        options: EnqueueOptions = {
            "workflow_name": TASK_WORKFLOW,
            "queue_name": queue_of(request.mode),
            "workflow_id": task_id,
            "priority": engine_priority(request.priority),
            "authenticated_user": request.user_id,
            "attributes": {CREATED: encode(now)},
        }
        if request.run_at and (wait_s := (request.run_at - now).total_seconds()) > 0:
            options["delay_seconds"] = wait_s
        self._client.enqueue(options, as_json(request))
        self._wake_workers()
        return task_of(self.find(task_id), ())

    def _wake_workers(self) -> None:
        """Notify workers on this machine of a new task, so that they need not wait for their next poll."""
        path = wake_file(self._database)
        path.touch(mode=0o600)
        os.utime(path)

    def _list(self, query: TaskQuery) -> Sequence[Task]:
        names = sorted({name for state in query.states for name in STATUSES[state]}) or None
        alive = self.alive()
        found: list[Task] = []
        skip, offset = query.offset, 0
        is_exact = not (query.session_id or query.modes or query.states - _EXACT)
        while len(found) < query.limit:
            rows = self._reader.list_workflows(
                name=TASK_WORKFLOW,
                status=names,
                user=query.user_id or None,
                workflow_id_prefix=f"{query.schedule}{SCHEDULE_SEPARATOR}" if query.schedule else None,
                sort_desc=True,
                limit=query.limit if is_exact else _PAGE,
                offset=skip if is_exact else offset,
                load_output=False,
            )
            matching = [task for row in rows if _matches(task := task_of(row, alive), query)]
            if is_exact:
                return matching
            offset += _PAGE
            dropped = min(skip, len(matching))
            skip -= dropped
            found += matching[dropped:]
            if len(rows) < _PAGE:
                break
        return found[: query.limit]

    def _cancel(self, task_id: str) -> Task:
        before = task_of(row := self.find(task_id), self.alive())
        if before.state is TaskState.CANCELING:
            return before
        after = TaskState.CANCELED if before.state is TaskState.QUEUED else TaskState.CANCELING
        check_transition(before.task_id, before.state, after)
        # What an earlier attempt has noted is not the end of the task.
        self.note(row.workflow_id, {END: None, RETRY_AT: None})
        self._client.cancel_workflow(row.workflow_id)
        return task_of(self.find(row.workflow_id), self.alive())

    def _report(self, session_id: str, progress: TaskProgress) -> None:
        for row in self.rows("PENDING", with_input=True):
            if request_of(row).session_id == session_id:
                noted = {PROGRESS: progress.progress, CURRENT: progress.current_step, ERROR: progress.error or None}
                self.note(row.workflow_id, noted)

    def _retry(self, task_id: str) -> Task:
        row = self.find(task_id)
        before = task_of(row, self.alive())
        check_transition(before.task_id, before.state, TaskState.QUEUED)
        noted = dict.fromkeys((OUTCOME, ERROR, END, RETRY_AT, PROGRESS, CURRENT))
        self.note(row.workflow_id, {BUSY: False, **noted})
        self._client.rewind_workflow(row.workflow_id, queue_name=queue_of(request_of(row).mode))
        self._wake_workers()
        return task_of(self.find(row.workflow_id), ())


# States that are told apart by the status of the engine alone.
_EXACT = frozenset({TaskState.COMPLETED, TaskState.FAILED})


def wake_file(database: QueueDatabase) -> Path:
    """Return the file whose mtime changes whenever a task is created on this machine."""
    return database.folder / "wake"


def _matches(task: Task, query: TaskQuery) -> bool:
    return (
        (not query.states or task.state in query.states)
        and (not query.modes or task.request.mode in query.modes)
        and (not query.session_id or task.session_id == query.session_id)
    )
