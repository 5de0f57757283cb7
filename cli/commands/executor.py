"""`agent executor`: run tasks sent by a manager."""

import asyncio
import socket
from pathlib import Path
from typing import Annotated

import typer

from agent.config.env_file import read_env_file
from agent.config.load import load_settings
from agent.config.service_settings import ServiceSettings, load_service_settings
from agent.config.user_dirs import data_path, os_environ
from agent.vocabulary.errors import AgentError, UsageError
from cli import prompt_flags as flag
from cli.pages.pages import print_notice

INSTALL = "pip install 'windlass[server]'"
MISSING = "agent executor needs FastAPI and uvicorn, which are not installed"
CANNOT_LISTEN = "cannot listen on {host}:{port}: {problem}"
READY = "The executor accepts tasks at {address}"
TOKEN_NOTICE = "Its token is in {path}"
TOKEN_VARIABLES = ("INTERNAL_API_TOKEN", "AGENT_INTERNAL_API_TOKEN")
# Mount points of a pool in its containers.
CONTAINER_FOLDER = Path("/run/windlass")
CONTAINER_WORKSPACE = "/workspace"
ENV_FILE_NAME = "environment"
ANYWHERE = "0.0.0.0"
PORT, CONTAINER_PORT = 8080, 8000

HostOption = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
PortOption = Annotated[int | None, typer.Option("--port", metavar="PORT", help="Port to listen on. [default: 8080]")]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="Folder that all tasks work in; otherwise one for each session."),
]
ContainerOption = Annotated[
    bool, typer.Option("--in-container", help="Listen on all addresses, as a container of the pool does.")
]
TasksOption = Annotated[int, typer.Option("--max-tasks", min=1, metavar="N", help="Maximum tasks at the same time.")]


def command(
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    workspace: WorkspaceOption = None,
    in_container: ContainerOption = False,
    max_tasks: TasksOption = 1,
    model: flag.Model = None,
    approval_mode: flag.Mode = None,
    backend: flag.Backend = None,
) -> None:
    """Run tasks that are sent over HTTP, and report them to their callback URLs. A pool starts this in containers."""
    try:
        from agent.api.access import Access, check_access
        from agent.api.executor_server import ExecutorOptions, serve_executor
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise UsageError(MISSING, INSTALL) from error
    environ = dict(os_environ())
    if in_container:
        environ |= read_env_file(CONTAINER_FOLDER / ENV_FILE_NAME).variables
        host = ANYWHERE
        workspace = workspace or Path(environ.get("WORKSPACE_PATH", CONTAINER_WORKSPACE))
    given = {"model": model or environ.get("DEFAULT_MODEL"), "approval_mode": approval_mode, "backend": backend}
    settings = {name: value for name, value in given.items() if value is not None}
    # Load the settings now, so that invalid ones are reported at once, not with the first task.
    service = load_service_settings(load_settings(environ=environ, flags=settings), environ).settings
    token, token_file = _token(service, environ, is_created=not in_container)
    access = Access(token=token, listens_on=host)
    check_access(access, has_own_token=token_file is None)
    options = ExecutorOptions(
        # Tasks do not need the token that lets clients start tasks.
        environ={name: value for name, value in environ.items() if name not in TOKEN_VARIABLES},
        settings=settings,
        workspace=workspace,
        sockets=CONTAINER_FOLDER if in_container else None,
        max_tasks=max_tasks,
    )
    with _listen(host, (CONTAINER_PORT if in_container else PORT) if port is None else port) as listening:
        print_notice(READY.format(address="http://{}:{}".format(*listening.getsockname()[:2])))
        if token_file:
            print_notice(TOKEN_NOTICE.format(path=token_file))
        asyncio.run(serve_executor(options, access, listening))


def _token(service: ServiceSettings, environ: dict[str, str], *, is_created: bool) -> tuple[str, Path | None]:
    """Return the token of the settings, or one created for this user, with its file."""
    from agent.config.token_file import load_or_create_token

    if service.has_own_token:
        return service.internal_api_token, None
    if not is_created:
        raise UsageError(f"a container of the pool gets its token in {CONTAINER_FOLDER / ENV_FILE_NAME}")
    path = data_path(environ) / "executor.token"
    return load_or_create_token(path), path


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, reuse_port=False)
    except OSError as error:
        problem = error.strerror or str(error)
        message = CANNOT_LISTEN.format(host=host, port=port, problem=problem)
        raise AgentError(message, "choose another port with --port") from error
