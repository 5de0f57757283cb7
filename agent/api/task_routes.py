"""The endpoints for tasks, schedules and questions."""

import hashlib
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response

from agent.api.models import (
    AnswerBody,
    DecisionBody,
    QuestionData,
    ScheduleBody,
    TaskBody,
    question_data,
)
from agent.api.parts import ServerParts, find
from agent.api.replies import Problem, Reply, ok
from agent.service.task import PendingQuestion, ScheduleMode, Task, TaskCreateResponse, TaskQuery, TaskState
from agent.service.task_data import ScheduleData, TaskData, schedule_data, task_data
from agent.service.task_service import created
from agent.vocabulary.errors import InputError

PREFIX = "/api/v1"
ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": Reply[Problem], "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 409, 413, 422, 429)
}
Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00/]+$")]
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


def task_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for tasks."""
    router = APIRouter(prefix=PREFIX, tags=["tasks"], responses=ERRORS)

    @router.post("/tasks", status_code=HTTPStatus.CREATED, response_model=Reply[TaskCreateResponse])
    async def create_task(body: TaskBody, key: IdempotencyKey = "") -> Response:
        """Create a task. With an `Idempotency-Key`, a request that is sent again returns the same task."""
        task = await parts.tasks.create(body.to_request(parts.task_settings), _task_id(key) if key else "")
        return ok(created(task), HTTPStatus.CREATED)

    @router.get("/tasks", response_model=Reply[list[TaskData]])
    async def list_tasks(
        status: Annotated[list[TaskState] | None, Query()] = None,
        mode: Annotated[list[ScheduleMode] | None, Query()] = None,
        session_id: Annotated[str, Query(max_length=100)] = "",
        schedule: Annotated[str, Query(max_length=100)] = "",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Response:
        """List tasks, newest first, finished ones included."""
        query = TaskQuery(
            states=frozenset(status or ()),
            modes=frozenset(mode or ()),
            session_id=session_id,
            schedule=schedule,
            limit=limit,
            offset=offset,
        )
        return ok([task_data(task) for task in await parts.tasks.list(query)])

    @router.get("/tasks/{task_id}", response_model=Reply[TaskData])
    async def show_task(task_id: Name) -> Response:
        """Show a task. Ended ones stay."""
        return await _task_reply(await find(parts.tasks.get(task_id)))

    @router.post("/tasks/{task_id}/cancel", response_model=Reply[TaskData])
    async def cancel_task(task_id: Name) -> Response:
        """Cancel a task: a queued one at once, a running one with its processes."""
        return await _task_reply(await parts.tasks.cancel((await find(parts.tasks.get(task_id))).task_id))

    @router.post("/tasks/{task_id}/retry", response_model=Reply[TaskData])
    async def retry_task(task_id: Name) -> Response:
        """Put a failed or canceled task back into the queue. It resumes: no finished step is repeated."""
        return await _task_reply(await parts.tasks.retry((await find(parts.tasks.get(task_id))).task_id))

    async def _task_reply(task: Task) -> Response:
        return ok(task_data(task, await parts.run_of(task)))

    return router


def schedule_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for schedules."""
    router = APIRouter(prefix=PREFIX, tags=["schedules"], responses=ERRORS)

    @router.post("/schedules", status_code=HTTPStatus.CREATED, response_model=Reply[ScheduleData])
    async def create_schedule(body: ScheduleBody) -> Response:
        """Create a schedule."""
        request = body.task.to_request(parts.task_settings)
        created = await parts.tasks.create_schedule(request, body.cron, zone=body.zone, name=body.name)
        return ok(schedule_data(created), HTTPStatus.CREATED)

    @router.get("/schedules", response_model=Reply[list[ScheduleData]])
    async def list_schedules() -> Response:
        """List all schedules."""
        return ok([schedule_data(schedule) for schedule in await parts.tasks.schedules.list()])

    @router.post("/schedules/{name}/pause", response_model=Reply[ScheduleData])
    async def pause_schedule(name: Name) -> Response:
        """Pause a schedule: it creates no more tasks."""
        return ok(schedule_data(await find(parts.tasks.schedules.pause(name, is_paused=True))))

    @router.post("/schedules/{name}/resume", response_model=Reply[ScheduleData])
    async def resume_schedule(name: Name) -> Response:
        """Resume a schedule. What it missed is not caught up on."""
        return ok(schedule_data(await find(parts.tasks.schedules.pause(name, is_paused=False))))

    @router.post("/schedules/{name}/run-now", status_code=HTTPStatus.CREATED, response_model=Reply[TaskData])
    async def run_schedule(name: Name) -> Response:
        """Create a task of a schedule now, besides those of the clock."""
        return ok(task_data(await find(parts.tasks.schedules.run_now(name))), HTTPStatus.CREATED)

    @router.delete("/schedules/{name}", response_model=Reply[None])
    async def remove_schedule(name: Name) -> Response:
        """Remove a schedule; its tasks stay."""
        await find(parts.tasks.schedules.remove(name))
        return ok(None)

    return router


def question_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for questions and approvals."""
    router = APIRouter(prefix=PREFIX, tags=["questions"], responses=ERRORS)

    @router.get("/questions", response_model=Reply[list[QuestionData]])
    async def list_questions(
        *,
        task_id: Annotated[str, Query(max_length=200)] = "",
        all: Annotated[bool, Query(description="also answered and expired ones")] = False,
    ) -> Response:
        """List questions and approvals, oldest first."""
        found = await find(parts.tasks.questions(task_id=task_id, is_open=not all))
        return ok([_data(question) for question in found])

    @router.post("/questions/{question_id}/answer", response_model=Reply[QuestionData])
    async def answer_question(question_id: Name, body: AnswerBody) -> Response:
        """Answer a question."""
        await _must_exist(question_id)
        return ok(_data(await parts.tasks.answer(question_id, body.answer)))

    @router.post("/approvals/{question_id}", response_model=Reply[QuestionData])
    async def decide_approval(question_id: Name, body: DecisionBody) -> Response:
        """Allow or deny what a run asks for."""
        await _must_exist(question_id)
        decided = await parts.tasks.approve(
            question_id, body.decision, command=body.command, remember=body.remember, remark=body.remark
        )
        return ok(_data(decided))

    async def _must_exist(question_id: str) -> None:
        await find(find_question(parts, question_id))

    def _data(question: PendingQuestion) -> QuestionData:
        return question_data(question, parts.card_text(question))

    return router


async def find_question(parts: ServerParts, question_id: str) -> PendingQuestion:
    """Return a question by its id, answered or not. Raises InputError if there is none."""
    known = await parts.tasks.questions(is_open=False)
    for question in known:
        if question.question_id == question_id:
            return question
    raise InputError(f"there is no question {question_id!r}", "`agent questions list` shows them")


def _task_id(key: str) -> str:
    return f"task-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:24]}"
