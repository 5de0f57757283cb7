"""TaskService: tasks, schedules and questions for the command line and the HTTP API."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from agent.protocol.events import MANIFEST_TOOL
from agent.service.engine import Schedules, TaskEngine
from agent.service.new_request import check_encoding, complete_request
from agent.service.night_window import NightWindow
from agent.service.task import (
    PendingQuestion,
    QueueStats,
    Schedule,
    ScheduleMode,
    Task,
    TaskCreateResponse,
    TaskProgress,
    TaskQuery,
    TaskRequest,
)
from agent.sessions.store import SessionStore
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.lazy_pattern import lazy_pattern

Remember: TypeAlias = Literal["run", "project", "always"]
_SCHEDULE_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CRON_FIELDS = 5
_CRON_HINT = "five fields: minute hour day month weekday, for example '30 2 * * 1-5'"
_HINT = "`agent questions list` shows what waits for an answer"
# Their subject is a command or a list of grants, which the user may change. Old records name no tool.
_EDITABLE = ("run_command", MANIFEST_TOOL, "")


class TaskService:
    """Operations on tasks for users and programs. Every method raises AgentError with a hint on failure."""

    def __init__(
        self,
        engine: TaskEngine,
        store: SessionStore,
        window: NightWindow,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        log: Callable[[str, Mapping[str, object]], None] = lambda event, facts: None,
    ) -> None:
        self._log = log
        self._engine = engine
        self._store = store
        self._window = window
        self._now = now

    async def create_task(
        self, user_id: str, prompt: str, config: TaskConfig, session_id: str | None = None
    ) -> TaskCreateResponse:
        """Create a task that starts at once, in a given session or a new one."""
        task = await self.create(
            TaskRequest(user_id=user_id, prompt=prompt, config=config, session_id=session_id or "")
        )
        return created(task)

    async def create(self, request: TaskRequest, task_id: str = "") -> Task:
        """Check a request, complete it with session, time and trace id, and put it into the queue.

        `task_id` makes it idempotent: an existing task with this id is returned unchanged.
        """
        completed = complete_request(request, self._now(), self._window)
        # An existing session is reused, an invalid id is refused; the worker creates the folder.
        self._store.folder_for(completed.session_id)
        return self._told("task.created", await self._engine.tasks.submit(completed, task_id), str(completed.mode))

    async def get(self, task_id: str) -> Task:
        """Return a task by its id or a unique beginning of it. Raises InputError if there is none."""
        return await self._engine.tasks.get(task_id)

    async def list(self, query: TaskQuery) -> Sequence[Task]:
        """Return tasks, newest first."""
        return await self._engine.tasks.list(query)

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task: queued ones at once, a running one with its processes."""
        return self._told("task.cancel", await self._engine.tasks.cancel(task_id), "canceled by the user")

    async def retry(self, task_id: str) -> Task:
        """Put a failed or canceled task back into the queue."""
        return self._told("task.retry", await self._engine.tasks.retry(task_id), "queued again by the user")

    def _told(self, event: str, task: Task, message: str) -> Task:
        facts = {"task_id": task.task_id, "session_id": task.session_id, "trace_id": task.request.trace_id}
        self._log(event, {**facts, "message": message})
        return task

    async def report(self, session_id: str, progress: TaskProgress) -> None:
        """Store an executor's progress for the running task of a session."""
        await self._engine.tasks.report(session_id, progress)

    async def questions(self, *, task_id: str = "", is_open: bool = True) -> Sequence[PendingQuestion]:
        """Return questions and approvals, oldest first."""
        return await self._engine.questions.list(task_id=task_id, is_open=is_open)

    async def answer(self, question_id: str, text: str, *, takes_number: bool = False) -> PendingQuestion:
        """Answer a question by its id, or by the id of a task with exactly one open question.

        `takes_number`: the number of an option is an answer, for people who see the options numbered.
        """
        question = await self._find("question", question_id)
        answer = text.strip()
        if not answer:
            raise InputError("the answer is empty")
        check_encoding(answer, "answer")
        if takes_number and answer not in question.options:
            numbered = {str(number): option for number, option in enumerate(question.options, 1)}
            answer = numbered.get(answer, answer)
        return await self._engine.questions.answer(replace(question, answer=answer))

    async def approve(
        self,
        question_id: str,
        decision: Literal["allow", "deny"],
        *,
        command: str | None = None,
        remember: Remember | None = None,
        remark: str = "",
    ) -> PendingQuestion:
        """Decide an approval by its id, or by the id of a task with exactly one; `command` replaces the original."""
        question = await self._find("approval", question_id)
        if decision == "deny" and (command is not None or remember):
            raise InputError("only an approval can be remembered, or change the command")
        if command is not None and remember:
            raise InputError("a changed command cannot be remembered", "leave one of them out")
        if command is not None and question.tool not in _EDITABLE:
            raise InputError(
                f"only a command can be edited, and {question.question_id} asks for {question.tool}",
                "allow it, or deny it with a remark",
            )
        check_encoding((command, remark), "answer")
        decided = replace(question, answer=decision, command=command, remember=remember, remark=remark)
        return await self._engine.questions.answer(decided)

    async def _find(self, kind: Literal["question", "approval"], name: str) -> PendingQuestion:
        waiting = [question for question in await self.questions() if question.kind == kind]
        found = [question for question in waiting if question.question_id == name]
        if not found and name:
            found = [question for question in waiting if question.task_id.startswith(name)]
        if not found:
            # A resumed run asked it again under another id; the engine finds it.
            known = await self.questions(is_open=False)
            found = [question for question in known if question.kind == kind and question.question_id == name]
        if not found:
            raise InputError(f"no {kind} {name!r} waits for an answer", _HINT)
        if len(found) > 1:
            ids = ", ".join(question.question_id for question in found)
            raise InputError(f"{name!r} has {len(found)} open {kind}s", f"name one of them: {ids}")
        return found[0]

    @property
    def schedules(self) -> Schedules:
        """The schedules: pause, resume, remove, list, and run now."""
        return self._engine.schedules

    async def create_schedule(self, request: TaskRequest, cron: str, *, zone: str = "UTC", name: str = "") -> Schedule:
        """Store a request that becomes a task at scheduled times."""
        name = name or f"schedule-{secrets.token_hex(3)}"
        if not _SCHEDULE_NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be the name of a schedule",
                "use letters, digits, '.', '_' and '-', at most 64 of them",
            )
        # Six would be one with seconds: a task every second is never meant.
        if len(cron.split()) != _CRON_FIELDS and not cron.strip().startswith("@"):
            raise InputError(f"{cron!r} is not a cron expression of five fields", _CRON_HINT)
        checked = complete_request(replace(request, mode=ScheduleMode.SCHEDULED), self._now(), self._window)
        kept = replace(checked, session_id=request.session_id, trace_id="", run_at=None)
        return await self._engine.schedules.add(Schedule(name=name, cron=cron, zone=zone, request=kept))

    async def stats(self) -> QueueStats:
        """Return figures about tasks, questions and workers."""
        return await self._engine.stats()

    async def close(self) -> None:
        """Close the connections to the queue."""
        await self._engine.close()


def created(task: Task) -> TaskCreateResponse:
    """Return the response to the creation of a task."""
    return TaskCreateResponse(
        task_id=task.task_id,
        session_id=task.session_id,
        status="scheduled",
        executor_url=task.executor_url,
        container_id=task.container_id,
    )
