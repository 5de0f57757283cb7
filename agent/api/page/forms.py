"""Targets of the forms on the pages. Each form carries the CSRF token of its session."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from agent.api.access import Access
from agent.api.guard import LOGIN, Identity
from agent.api.models import AnswerBody, DecisionBody, ScheduleBody, TaskBody
from agent.api.page.pages import local_path, logged_in, render_tasks
from agent.api.page.rendering import Renderer
from agent.api.parts import ServerParts, find
from agent.api.replies import Forbidden
from agent.api.task_routes import Name, find_question
from agent.service.task import ScheduleMode
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig

T = TypeVar("T")
Form: TypeAlias = Mapping[str, str]
_MAX_FIELDS = 100
_REMEMBER = {"allow-run": "run", "allow-project": "project", "allow-always": "always"}


def session_forms(parts: ServerParts, renderer: Renderer) -> APIRouter:
    """Return the targets of the forms that log in and out."""
    router = APIRouter(include_in_schema=False)

    @router.post(LOGIN)
    async def log_in(request: Request) -> Response:
        form = await _fields(request)
        is_known = _is_token(parts.access, form.get("token", "")) or parts.sessions.redeem(form.get("code", ""))
        target = form.get("next", "/")
        if is_known:
            return logged_in(parts, target)
        return renderer.page("login.html", "", code=HTTPStatus.UNAUTHORIZED, next=local_path(target), is_wrong=True)

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        await read_form(parts, request)
        reply = RedirectResponse(LOGIN, HTTPStatus.SEE_OTHER)
        reply.delete_cookie(parts.access.cookie_name, httponly=True, samesite="strict")
        return reply

    return router


def task_forms(parts: ServerParts, renderer: Renderer) -> APIRouter:
    """Return the targets of the forms about tasks and schedules."""
    router = APIRouter(include_in_schema=False)

    @router.post("/ui/tasks")
    async def create(request: Request) -> Response:
        form = await read_form(parts, request)
        try:
            return _go(await _create(parts, form))
        except InputError as error:
            # What was typed stays.
            return await render_tasks(parts, renderer, request, form=form, problem=error)

    @router.post("/ui/tasks/{task_id}/cancel")
    async def cancel(request: Request, task_id: Name) -> Response:
        await read_form(parts, request)
        task = await parts.tasks.cancel((await find(parts.tasks.get(task_id))).task_id)
        return _go(f"/tasks/{quote(task.task_id)}")

    @router.post("/ui/tasks/{task_id}/retry")
    async def retry(request: Request, task_id: Name) -> Response:
        await read_form(parts, request)
        task = await parts.tasks.retry((await find(parts.tasks.get(task_id))).task_id)
        return _go(f"/tasks/{quote(task.task_id)}")

    @router.post("/ui/schedules/{name}")
    async def change_schedule(request: Request, name: Name) -> Response:
        form = await read_form(parts, request)
        schedules = parts.tasks.schedules
        actions: Mapping[str, Callable[[], Awaitable[object]]] = {
            "pause": lambda: schedules.pause(name, is_paused=True),
            "resume": lambda: schedules.pause(name, is_paused=False),
            "run-now": lambda: schedules.run_now(name),
            "remove": lambda: schedules.remove(name),
        }
        action = actions.get(form.get("action", ""))
        if action is None:
            raise InputError("the form does not say what to do")
        await find(action())
        return _go("/schedules")

    return router


async def _create(parts: ServerParts, form: Form) -> str:
    """Create the task or schedule that a form describes; return the page that shows it."""
    body = task_body(form)
    request = body.to_request(parts.task_settings)
    if form.get("when") != "cron":
        task = await parts.tasks.create(request)
        return f"/tasks/{quote(task.task_id)}"
    schedule = _checked(
        lambda: ScheduleBody(
            cron=form.get("cron", ""), zone=form.get("zone", "UTC"), name=form.get("name", ""), task=body
        )
    )
    await parts.tasks.create_schedule(request, schedule.cron, zone=schedule.zone, name=schedule.name)
    return "/schedules"


def question_forms(parts: ServerParts) -> APIRouter:
    """Return the targets of the forms that answer questions and approvals."""
    router = APIRouter(include_in_schema=False)

    @router.post("/ui/questions/{question_id}/answer")
    async def answer(request: Request, question_id: Name) -> Response:
        form = await read_form(parts, request)
        question = await find(find_question(parts, question_id))
        # An option is identified by its number: its text may contain characters that a form changes.
        options = {str(number): option for number, option in enumerate(question.options, 1)}
        text = options.get(form.get("option", ""), "") or form.get("text", "")
        body = _checked(lambda: AnswerBody(answer=text))
        await parts.tasks.answer(question.question_id, body.answer, takes_number="option" not in form)
        return _go(form.get("back", "/"))

    @router.post("/ui/approvals/{question_id}")
    async def decide(request: Request, question_id: Name) -> Response:
        form = await read_form(parts, request)
        question = await find(find_question(parts, question_id))
        chosen = form.get("decision", "")
        body = _checked(
            lambda: DecisionBody.model_validate(
                {
                    "decision": "allow" if chosen in _REMEMBER else chosen,
                    "remember": _REMEMBER.get(chosen),
                    "remark": form.get("remark", ""),
                }
            )
        )
        await parts.tasks.approve(question.question_id, body.decision, remember=body.remember, remark=body.remark)
        return _go(form.get("back", "/"))

    return router


async def read_form(parts: ServerParts, request: Request) -> Form:
    """Return the fields of a form. Raises Forbidden without a valid CSRF token."""
    form = await _fields(request)
    identity: Identity = request.scope["identity"]
    is_ours = identity.credential == "token" or parts.sessions.is_csrf_token(form.get("csrf", ""), identity.cookie)
    if not is_ours:
        raise Forbidden("this form has expired", "go back, reload the page and try again")
    return form


def task_body(form: Form) -> TaskBody:
    """Return the task that a form describes. Raises InputError."""
    when = form.get("when", "now")
    given: dict[str, object] = {
        # Browsers send line breaks as CR LF.
        "prompt": form.get("prompt", "").replace("\r\n", "\n"),
        "config": TaskConfig(repo_url=form.get("repo_url", "").strip(), model=form.get("model", "").strip()),
        "session_id": form.get("session_id", "").strip(),
        "cwd": form.get("cwd", "").strip(),
        "priority": form.get("priority") or 0,
        "mode": ScheduleMode.NIGHTLY if when == "nightly" else ScheduleMode.IMMEDIATE,
        "run_at": _local_time(form.get("at", ""), form.get("zone", "UTC")) if when == "at" else None,
    }
    return _checked(lambda: TaskBody.model_validate(given))


def _checked(build: Callable[[], T]) -> T:
    """Return the built object; a validation error becomes a readable message."""
    try:
        return build()
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise InputError(f"the form is not complete: {problems[0]}", "; ".join(problems[1:])) from error


def _local_time(text: str, zone: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    except (ValueError, ZoneInfoNotFoundError, OSError) as error:
        raise InputError(f"{text!r} in {zone!r} is not a time", "choose a day and a time") from error


async def _fields(request: Request) -> Form:
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError as error:
        raise InputError("this is not a form") from error


def _is_token(access: Access, given: str) -> bool:
    return access.check_bearer(f"Bearer {given}") == "token"


def _go(target: str) -> Response:
    return RedirectResponse(local_path(target), HTTPStatus.SEE_OTHER)
