"""The read-only pages: tasks, one task, schedules, runs, one run, and the description of the API."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from agent.api.access import SESSION_S
from agent.api.guard import LOGIN, Identity
from agent.api.page.rendering import Renderer
from agent.api.parts import ServerParts, find
from agent.api.replies import NotFound
from agent.api.run_routes import find_known_run, read_run
from agent.api.task_routes import Name, Offset
from agent.service.task import ACTIVE, TaskQuery, TaskState
from agent.service.task_data import schedule_data, task_data
from agent.sessions.views.listing import RUNNING, newest_runs, run_status
from agent.sessions.views.run_summary import RunView
from agent.vocabulary.errors import AgentError

_STATIC = Path(__file__).parent / "static"
_PAGE_SIZE = 50
_RUNS = 100
FORM_FIELDS = ("prompt", "when", "at", "cron", "name", "zone", "cwd", "repo_url", "model", "session_id", "priority")
_ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def csrf_of(parts: ServerParts, request: Request) -> str:
    """Return the CSRF token for the forms of this page; clients with the bearer token get one, too."""
    identity: Identity = request.scope["identity"]
    return parts.sessions.csrf_token(identity.cookie)


def task_pages(parts: ServerParts, renderer: Renderer) -> APIRouter:
    """Return the pages about tasks and schedules."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def tasks_page(request: Request, offset: Offset = 0, status: TaskState | None = None) -> Response:
        return await render_tasks(parts, renderer, request, offset=offset, status=status)

    @router.get("/tasks/{task_id}")
    async def task_page(request: Request, task_id: Name) -> Response:
        task = await find(parts.tasks.get(task_id))
        run_id = await parts.run_of(task)
        run = await asyncio.to_thread(_read_if_there, parts, run_id)
        questions = await parts.tasks.questions(task_id=task.task_id) if task.waiting or not task.is_ended else ()
        return renderer.page(
            "task.html",
            csrf_of(parts, request),
            here="tasks",
            live=not task.is_ended,
            events=_events(run_id) if run and not task.is_ended else "",
            task=task_data(task, run_id),
            run=run,
            running=task.state in ACTIVE,
            workers=await _workers(parts) if task.state is TaskState.QUEUED else 0,
            can_cancel=not task.is_ended and task.state is not TaskState.CANCELING,
            can_retry=task.state in (TaskState.FAILED, TaskState.CANCELED),
            questions=[(q, parts.card_text(q)) for q in questions],
        )

    @router.get("/schedules")
    async def schedules_page(request: Request) -> Response:
        schedules = [schedule_data(schedule) for schedule in await parts.tasks.schedules.list()]
        return renderer.page(
            "schedules.html", csrf_of(parts, request), here="schedules", live=True, schedules=schedules
        )

    return router


async def render_tasks(
    parts: ServerParts,
    renderer: Renderer,
    request: Request,
    *,
    offset: int = 0,
    status: TaskState | None = None,
    form: Mapping[str, str] | None = None,
    problem: AgentError | None = None,
) -> HTMLResponse:
    """Return the page of all tasks, or of those with a status; with a form that could not be accepted, and why."""
    states = frozenset({status}) if status else frozenset[TaskState]()
    found = await parts.tasks.list(TaskQuery(states=states, limit=_PAGE_SIZE + 1, offset=offset))
    stats = await parts.tasks.stats()
    given = {"zone": "UTC", **(form or {})}
    return renderer.page(
        "tasks.html",
        csrf_of(parts, request),
        code=HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK,
        here="tasks",
        live=problem is None,
        tasks=[task_data(task) for task in found[:_PAGE_SIZE]],
        older=offset + _PAGE_SIZE if len(found) > _PAGE_SIZE else 0,
        only=str(status or ""),
        counts=[(str(state), stats.tasks[state]) for state in TaskState if stats.tasks.get(state) or state is status],
        workers=sum(worker.is_alive for worker in stats.workers),
        questions=[(q, parts.card_text(q)) for q in await parts.tasks.questions()],
        form={name: given.get(name, "") for name in FORM_FIELDS},
        problem=problem.message if problem else "",
        problem_hint=problem.hint if problem else "",
    )


async def _workers(parts: ServerParts) -> int:
    return sum(worker.is_alive for worker in (await parts.tasks.stats()).workers)


def run_pages(parts: ServerParts, renderer: Renderer) -> APIRouter:
    """Return the pages about runs."""
    router = APIRouter(include_in_schema=False)

    @router.get("/runs")
    async def runs_page(request: Request) -> Response:
        try:
            runs = await asyncio.to_thread(newest_runs, parts.store, _RUNS)
        except OSError as error:
            raise NotFound(f"the sessions cannot be read: {error.strerror}") from error
        return renderer.page("runs.html", csrf_of(parts, request), here="runs", live=True, runs=runs)

    @router.get("/runs/{run_id}")
    async def run_page(request: Request, run_id: Name) -> Response:
        run = await asyncio.to_thread(read_run, parts, run_id)
        status = await asyncio.to_thread(lambda: run_status(find_known_run(parts, run.run_id), run.subtype))
        return renderer.page(
            "run_page.html",
            csrf_of(parts, request),
            here="runs",
            events=_events(run.run_id) if status == RUNNING else "",
            run=run,
            status=status,
            running=status == RUNNING,
        )

    return router


def public_pages(parts: ServerParts, renderer: Renderer, app: FastAPI) -> APIRouter:
    """Return the pages without user data: the description of the API, static files, the login."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def docs_page(request: Request) -> Response:
        document = app.openapi()
        return renderer.page(
            "docs.html", csrf_of(parts, request), here="docs", info=document["info"], groups=_operations(document)
        )

    @router.get("/static/{name}")
    async def asset(name: Name) -> Response:
        if name not in _ASSETS:
            raise NotFound(f"there is no file {name!r}")
        # Revalidated each time, and sent again only if it has changed.
        return FileResponse(_STATIC / name, media_type=_ASSETS[name], headers={"Cache-Control": "no-cache"})

    @router.get("/favicon.ico")
    async def favicon() -> Response:
        return RedirectResponse("/static/icon.svg", HTTPStatus.MOVED_PERMANENTLY)

    @router.get(LOGIN)
    async def login_page(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
        identity: Identity = request.scope["identity"]
        if identity.credential:
            return RedirectResponse(local_path(next), HTTPStatus.SEE_OTHER)
        return renderer.page("login.html", "", next=local_path(next), is_wrong=False)

    return router


def logged_in(parts: ServerParts, target: str) -> Response:
    """Return the response that starts a browser session."""
    reply = RedirectResponse(local_path(target), HTTPStatus.SEE_OTHER)
    access = parts.access
    reply.set_cookie(
        access.cookie_name,
        parts.sessions.new_cookie(),
        max_age=SESSION_S,
        httponly=True,
        samesite="strict",
        secure=access.is_encrypted,
    )
    return reply


def local_path(target: str) -> str:
    """Return a path on this server; any other target becomes the first page."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_local and target.isascii() else "/"


def error_page(
    parts: ServerParts, renderer: Renderer, request: Request, *, status: int, message: str, hints: Sequence[str]
) -> HTMLResponse:
    """Return the page for a failed request."""
    identity: Identity = request.scope["identity"]
    csrf = csrf_of(parts, request) if identity.credential else ""
    return renderer.page("error.html", csrf, code=status, message=message, hints=hints)


def _events(run_id: str) -> str:
    return f"/api/v1/runs/{run_id}/events"


def _read_if_there(parts: ServerParts, run_id: str) -> RunView | None:
    try:
        return read_run(parts, run_id) if run_id else None
    except NotFound:
        return None


def _operations(document: Mapping[str, object]) -> list[tuple[str, list[Mapping[str, object]]]]:
    """Return the endpoints by tag, as the page shows them."""
    groups: dict[str, list[Mapping[str, object]]] = {}
    paths = document["paths"]
    assert isinstance(paths, Mapping)
    for path, methods in paths.items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(
                {
                    "id": operation["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "description": operation.get("description", "").partition("\n\n")[0],
                    "parameters": [p["name"] for p in operation.get("parameters", ())],
                    "body": json.dumps(_resolve(body, document), indent=2) if body else "",
                }
            )
    return list(groups.items())


def _resolve(schema: Mapping[str, object], document: Mapping[str, object]) -> object:
    """Return the schema that a reference points to."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    components = document.get("components", {})
    assert isinstance(components, Mapping)
    return components.get("schemas", {}).get(name, schema)
