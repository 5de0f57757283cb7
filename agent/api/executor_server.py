"""The executor: runs tasks received over HTTP, and reports each to its callback URL."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from agent.api.access import Access
from agent.api.replies import (
    Conflict,
    JsonResponse,
    NotFound,
    error_reply,
    on_agent_error,
    on_bug,
    on_http_error,
    on_invalid_request,
)
from agent.app import Windlass
from agent.hooks.callback_client import CallbackClient
from agent.hooks.hook import Hook
from agent.run_context import WindlassConfig
from agent.service.containers.callback_relay import CallbackRelay
from agent.version import VERSION
from agent.vocabulary.errors import AgentError
from agent.vocabulary.task_config import TaskConfig, task_config_from_json
from tooling.contract.fast_dataclass import dataclass

CALLBACK_PATH = "/api/v1/callback"
MAX_BODY_BYTES = 4_000_000
# Time for tasks to end when the server stops.
STOP_S = 20
# Time that a new task waits for the exit of one that has already reported its end.
ENDING_S = 2
NOT_BEGUN = "interrupted"


class ExecuteTask(BaseModel):
    """The body of POST /v1/tasks/execute. The names are those that managers send."""

    model_config = ConfigDict(extra="forbid")

    session_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    prompt: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    callback_url: str = ""
    callback_token: Annotated[str, Field(repr=False)] = ""
    config: dict[str, object] = {}
    callback_base_url: str | None = None
    sdk_session_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None = None

    @property
    def callback(self) -> str:
        """The URL that events are posted to; empty if none was given."""
        base = (self.callback_base_url or "").rstrip("/")
        return self.callback_url or (f"{base}{CALLBACK_PATH}" if base else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """Options of the executor: settings, variables, and the working folder, by default one per session.

    The pool listens for callbacks to its machine on sockets in the folder `sockets`.
    """

    environ: Mapping[str, str]
    settings: Mapping[str, object]
    workspace: Path | None = None
    sockets: Path | None = None
    max_tasks: int = 1


class RunningTasks:
    """The running tasks, at most one per session."""

    def __init__(self, options: ExecutorOptions) -> None:
        self._options = options
        self._relay = CallbackRelay(options.sockets)
        self._tasks: dict[str, tuple[Windlass, asyncio.Task[None]]] = {}
        self.completed = 0

    @property
    def running(self) -> int:
        return len(self._tasks)

    async def start(self, request: ExecuteTask, trace_id: str) -> None:
        """Start a task in the background. Raises AgentError if it cannot be accepted."""
        session_id = request.session_id
        if running := [task for _, task in self._tasks.values()]:
            # A task that has just reported its end may still be running when the next one arrives.
            await asyncio.wait(running, timeout=ENDING_S, return_when=asyncio.FIRST_COMPLETED)
        if session_id in self._tasks:
            raise Conflict(f"session {session_id} is running a task", "wait until it has ended, or cancel it")
        if self.running >= self._options.max_tasks:
            raise Conflict(f"{self.running} tasks are running, and no more are accepted", "try again later")
        begun = _Begun()
        windlass = Windlass(self._config(request, trace_id, begun))
        await self._relay.open(request.callback)
        task = asyncio.create_task(self._run(windlass, request, trace_id, begun), name=f"task of {session_id}")
        self._tasks[session_id] = (windlass, task)
        task.add_done_callback(lambda _: self._forget(session_id))

    def cancel(self, session_id: str) -> None:
        """Stop the task of a session; it still reports its end. Raises NotFound if none is running."""
        if session_id not in self._tasks:
            raise NotFound(f"no task of session {session_id} is running")
        self._tasks[session_id][0].interrupt()

    async def close(self) -> None:
        """Stop all tasks, and wait until they have reported it."""
        for windlass, _ in self._tasks.values():
            windlass.interrupt()
        if self._tasks:
            await asyncio.wait([task for _, task in self._tasks.values()], timeout=STOP_S)
        await self._relay.close()

    def _forget(self, session_id: str) -> None:
        del self._tasks[session_id]
        self.completed += 1

    def _config(self, request: ExecuteTask, trace_id: str, begun: "_Begun") -> WindlassConfig:
        options = self._options
        callback = {"callback_url": request.callback, "callback_token": request.callback_token}
        return WindlassConfig(
            settings={**options.settings, **callback},
            environ=options.environ,
            cwd=options.workspace,
            session_id=request.sdk_session_id or request.session_id,
            task=task_config_from_json(json.dumps(request.config)),
            trace_id=trace_id,
            hooks=(begun,),
        )

    async def _run(self, windlass: Windlass, request: ExecuteTask, trace_id: str, begun: "_Begun") -> None:
        problem = ""
        async with windlass:
            try:
                async for _ in windlass.run(request.prompt):
                    pass
            except AgentError as error:
                problem = f"{error.message} ({error.hint})" if error.hint else error.message
            if not begun.is_set:
                # A run that failed before its hooks were called has reported nothing.
                await self._report_failure(request, trace_id, problem or NOT_BEGUN)

    async def _report_failure(self, request: ExecuteTask, trace_id: str, problem: str) -> None:
        client = CallbackClient(
            request.callback, session_id=request.session_id, token=request.callback_token, trace_id=trace_id
        )
        client.start()
        await client.send_callback("task_failed", {"status": "failed", "progress": 0, "error_message": problem})
        await client.close()


class _Begun(Hook):
    """Records that the hooks, and so the callbacks, were called."""

    is_set = False

    async def before_execution(self, config: TaskConfig) -> None:
        """Record the call."""
        self.is_set = True


def build_executor(tasks: RunningTasks, access: Access) -> FastAPI:
    """Build the app: every endpoint except /health requires the token."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await tasks.close()

    app = FastAPI(
        title="Windlass executor",
        version=VERSION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_exception_handler(AgentError, on_agent_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(Exception, on_bug)

    @app.middleware("http")
    async def check(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return _refusal(request, access) or await call_next(request)

    @app.get("/health")
    async def health() -> Response:
        """Say that the executor accepts tasks."""
        return JsonResponse(
            {"status": "ok", "version": VERSION, "running": tasks.running, "completed": tasks.completed}
        )

    @app.post("/v1/tasks/execute")
    async def execute(body: ExecuteTask, x_trace_id: Annotated[str, Header()] = "") -> Response:
        """Accept a task; what becomes of it is reported to its callback URL."""
        await tasks.start(body, x_trace_id)
        return JsonResponse({"status": "accepted", "session_id": body.session_id})

    @app.post("/v1/tasks/{session_id}/cancel")
    async def cancel(session_id: str) -> Response:
        """End the task of a session."""
        tasks.cancel(session_id)
        return JsonResponse({"status": "canceling", "session_id": session_id})

    return app


def _refusal(request: Request, access: Access) -> Response | None:
    """Return the refusal of a request that is unauthorized or too large; None if it is accepted."""
    length = request.headers.get("content-length", "")
    if request.method == "POST" and (not length.isdecimal() or int(length) > MAX_BODY_BYTES):
        return error_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {MAX_BODY_BYTES} bytes")
    if request.headers.get("origin"):
        return error_reply(HTTPStatus.FORBIDDEN, "requests of pages are refused")
    if request.url.path == "/health" or access.check_bearer(request.headers.get("authorization", "")) == "token":
        return None
    return error_reply(
        HTTPStatus.UNAUTHORIZED,
        "a valid token is needed",
        hint="send the header Authorization: Bearer TOKEN",
        headers={"WWW-Authenticate": "Bearer"},
    )


async def serve_executor(options: ExecutorOptions, access: Access, listening: socket.socket) -> None:
    """Serve on a listening socket until a signal; running tasks are stopped and report it."""
    app = build_executor(RunningTasks(options), access)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=STOP_S
    )
    await uvicorn.Server(config).serve(sockets=[listening])
