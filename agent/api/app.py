"""The server as an ASGI application: the guard around the endpoints and the pages."""

import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from agent.api.executor_routes import executor_routes, workspace_routes
from agent.api.guard import API, AsgiApp, Guard, Receive, Scope, Send
from agent.api.metrics import CONTENT_TYPE, Metrics
from agent.api.page.forms import question_forms, session_forms, task_forms
from agent.api.page.pages import error_page, public_pages, run_pages, task_pages
from agent.api.page.rendering import Renderer
from agent.api.parts import ServerParts
from agent.api.replies import (
    JsonResponse,
    Reply,
    ok,
    on_agent_error,
    on_bug,
    on_http_error,
    on_invalid_request,
)
from agent.api.run_routes import callback_routes, run_routes, session_routes
from agent.api.task_routes import PREFIX, question_routes, schedule_routes, task_routes
from agent.version import VERSION
from agent.vocabulary.errors import AgentError
from tooling.contract.fast_dataclass import dataclass

ErrorHandler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
_DESCRIPTION = "Tasks, schedules, questions, runs and sessions. Every request needs `Authorization: Bearer TOKEN`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The server is up."""

    status: str
    service: str
    version: str


def build_app(parts: ServerParts) -> AsgiApp:
    """Build the complete server."""
    app = build_api(parts)
    renderer = Renderer(parts.translate)
    for pages in (
        task_pages(parts, renderer),
        run_pages(parts, renderer),
        public_pages(parts, renderer, app),
        session_forms(parts, renderer),
        task_forms(parts, renderer),
        question_forms(parts),
    ):
        app.include_router(pages)
    _add_error_handlers(app, parts, renderer)
    return Guard(_Measured(app, parts.metrics, parts.report_bug), parts.access, parts.sessions)


def build_api(parts: ServerParts) -> FastAPI:
    """Build the endpoints, which the OpenAPI document describes."""
    app = FastAPI(
        title="Windlass",
        version=VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        # A redirect would be a reply without the envelope.
        redirect_slashes=False,
        default_response_class=JsonResponse,
    )
    for routes in _ROUTES:
        app.include_router(routes(parts))
    return app


def _add_error_handlers(app: FastAPI, parts: ServerParts, renderer: Renderer) -> None:
    """Reply to errors with JSON, or with a page if a browser requested one."""

    def for_browsers(handler: ErrorHandler) -> ErrorHandler:
        async def reply(request: Request, error: Exception) -> Response:
            answer = await handler(request, error)
            if request.url.path.startswith((API, "/metrics", "/openapi.json")):
                return answer
            found = json.loads(bytes(answer.body))
            message, hints = found["message"], tuple(filter(None, (found["data"]["hint"], *found["data"]["errors"])))
            return error_page(parts, renderer, request, status=answer.status_code, message=message, hints=hints)

        return reply

    app.add_exception_handler(AgentError, for_browsers(on_agent_error))
    app.add_exception_handler(HTTPException, for_browsers(on_http_error))
    app.add_exception_handler(RequestValidationError, for_browsers(on_invalid_request))
    app.add_exception_handler(Exception, for_browsers(on_bug))


def system_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for health and metrics."""
    router = APIRouter(tags=["system"])

    @router.get(f"{PREFIX}/health", response_model=Reply[Health])
    async def health() -> Response:
        """Tell that the server is up. Needs no token, and tells nothing else."""
        return ok(Health(status="healthy", service="windlass", version=VERSION))

    @router.get("/metrics")
    async def metrics() -> Response:
        """Return figures in the text format of Prometheus."""
        try:
            stats = await parts.tasks.stats()
        except (AgentError, OSError):
            stats = None
        return Response(parts.metrics.render(stats), media_type=CONTENT_TYPE)

    return router


_ROUTES = (
    task_routes,
    schedule_routes,
    question_routes,
    run_routes,
    session_routes,
    callback_routes,
    executor_routes,
    workspace_routes,
    system_routes,
)


class _Measured:
    """Counts requests, and replaces tracebacks of our bugs by replies."""

    def __init__(self, app: AsgiApp, metrics: Metrics, report_bug: Callable[[str, Exception], None]) -> None:
        self._app = app
        self._metrics = metrics
        self._report_bug = report_bug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def note_status(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception as error:  # noqa: BLE001 - the edge: the client has its reply already, or cannot get one
            self._report_bug(f"{scope['method']} {scope['path']}", error)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(scope["method"], route, status, time.perf_counter() - started)
