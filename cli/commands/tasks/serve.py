"""`agent serve`: the HTTP API and the web page."""

import asyncio
import contextlib
import gc
import socket
import ssl
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.config.environment import is_shared_place
from agent.config.load import LoadedSettings, load_settings
from agent.config.service_settings import ServiceSettings, load_service_settings
from agent.config.token_file import is_placeholder, load_or_create_token
from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.telemetry.log_file import LogFile, error_log_path, log_path
from agent.vocabulary.errors import ConfigError
from cli.messages.translate import translate_page
from cli.pages import pages
from cli.run.progress import print_stderr
from cli.screen.cards import card_text

if TYPE_CHECKING:
    from agent.api.access import Access, BrowserSessions
    from agent.api.guard import AsgiApp
    from agent.api.parts import ExecutorParts, ServerParts
    from agent.service.task_service import TaskService

INSTALL = "pip install 'windlass[server,queue]'"
MISSING = "agent serve needs FastAPI, uvicorn and DBOS, which are not installed"
_EXTRAS = ("fastapi", "starlette", "pydantic", "uvicorn", "jinja2", "markdown_it", "markupsafe", "dbos", "sqlalchemy")
_TOKEN_FILE = "serve-token"
_MAX_CONNECTIONS = 2000
_GRACE_S = 3

Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[
    int | None, typer.Option("--port", metavar="PORT", help="Port to listen on; 0 chooses one.", min=0, max=65535)
]
TlsCert = Annotated[str | None, typer.Option("--tls-cert", metavar="FILE", help="TLS certificate (PEM).")]
TlsKey = Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate (PEM).")]
AllowHost = Annotated[
    list[str] | None, typer.Option("--allow-host", metavar="NAME", help="Another host name of this server.")
]
AllowOrigin = Annotated[
    list[str] | None, typer.Option("--allow-origin", metavar="ORIGIN", help="A page that may call this server (CORS).")
]
ShowToken = Annotated[bool, typer.Option("--show-token", help="Print the token and exit.")]


def command(
    *,
    host: Host = None,
    port: Port = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    show_token: ShowToken = False,
) -> None:
    """Serve tasks, schedules, questions and runs over HTTP, with a page for browsers. A worker runs the tasks."""
    environ = os_environ()
    loaded = load_settings(environ=environ)
    for warning in loaded.warnings:
        print_stderr(f"warning: {warning}")
    given = {
        "host": host,
        "port": port,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "allowed_hosts": tuple(allow_host or ()) or None,
        "allowed_origins": tuple(allow_origin or ()) or None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = replace(load_service_settings(loaded, environ).settings, **chosen)  # type: ignore[arg-type]
    data = data_dir(environ)
    if show_token:
        pages.print_text(f"{_token(settings, data)}\n")
        return
    try:
        raise typer.Exit(_serve(settings, loaded, data, environ))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRAS:
            raise
        raise ConfigError(MISSING, INSTALL) from error


def _serve(settings: ServiceSettings, loaded: LoadedSettings, data: Path, environ: Mapping[str, str]) -> int:
    from agent.api.access import check_access
    from agent.api.app import build_app
    from agent.service.open_service import open_service

    access = _access(settings, data)
    check_access(access, has_own_token=settings.has_own_token)
    tls = _tls(settings)
    service = open_service(loaded, environ).service
    is_shared = not access.is_local or is_shared_place(loaded.settings.shared, environ)
    task_settings = {"shared": "yes"} if is_shared else {}
    parts = _parts(access, service, _executors(settings, environ), data, task_settings)
    app = build_app(parts)
    # Loaded modules stay alive; a full garbage collection would scan them and delay every client by 0.1 s.
    gc.collect()
    gc.freeze()
    with _listen(access, settings.port) as listener:
        _print_addresses(access, parts.sessions, listener.getsockname()[1])
        return asyncio.run(_run(app, listener, tls))


def _access(settings: ServiceSettings, data: Path) -> "Access":
    from agent.api.access import Access

    return Access(
        token=_token(settings, data),
        callback_token="" if is_placeholder(settings.callback_token) else settings.callback_token,
        listens_on=settings.host,
        hosts=tuple(name.lower() for name in settings.allowed_hosts),
        origins=settings.allowed_origins,
        is_encrypted=bool(settings.tls_cert),
        max_body_bytes=settings.max_request_kb * 1000,
        requests_per_s=settings.requests_per_second,
    )


def _token(settings: ServiceSettings, data: Path) -> str:
    return settings.internal_api_token if settings.has_own_token else load_or_create_token(data / _TOKEN_FILE)


def _executors(settings: ServiceSettings, environ: Mapping[str, str]) -> "ExecutorParts":
    from agent.api.parts import ExecutorParts
    from agent.service.containers.pool_view import PoolView
    from agent.service.workspaces.open_workspaces import open_workspaces

    workspaces = open_workspaces(settings, environ)
    return ExecutorParts(
        containers=PoolView(workspaces.store, environ),
        workspaces=workspaces,
        ignores_dot_files=settings.workspace_ignore_dot_files,
    )


def _parts(
    access: "Access", service: "TaskService", executors: "ExecutorParts", data: Path, settings: Mapping[str, str]
) -> "ServerParts":
    from agent.api.access import BrowserSessions
    from agent.api.event_stream import LogWatch
    from agent.api.metrics import Metrics
    from agent.api.parts import ServerParts
    from agent.service.callback_inbox import CallbackInbox

    watch = LogWatch()
    return ServerParts(
        access=access,
        sessions=BrowserSessions(access.token),
        tasks=service,
        executors=executors,
        store=SessionStore(data),
        inbox=CallbackInbox(data),
        card=card_text,
        watch=watch,
        metrics=Metrics(watch),
        report_bug=_BugLog(data).write,
        task_settings=settings,
        translate=translate_page,
    )


class _BugLog:
    """Writes errors of the server to the log files, where `agent logs` finds them."""

    def __init__(self, data: Path) -> None:
        self._logs = (LogFile(log_path(data)), LogFile(error_log_path(data)))

    def write(self, request: str, error: Exception) -> None:
        """Write the traceback of one error."""
        line = {
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": "error",
            "event": "serve.error",
            "message": f"{request}: {type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error)),
        }
        for log in self._logs:
            log.write(line)


def _tls(settings: ServiceSettings) -> tuple[str, str] | None:
    certificate, key = settings.tls_cert, settings.tls_key
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise ConfigError("TLS needs both a certificate and its key", "give --tls-cert and --tls-key")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"the TLS certificate {certificate} cannot be used: {reason}", "both files are PEM"
        ) from error
    return certificate, key


@contextlib.contextmanager
def _listen(access: "Access", port: int) -> Iterator[socket.socket]:
    host = access.listens_on
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}", "--port 0 chooses a free port") from error
    with listener:
        yield listener


def _print_addresses(access: "Access", sessions: "BrowserSessions", port: int) -> None:
    from agent.api.access import PAGE_HOST
    from agent.api.guard import LOGIN

    scheme = "https" if access.is_encrypted else "http"
    host = f"[{access.listens_on}]" if ":" in access.listens_on else access.listens_on
    print_stderr(f"listening on {scheme}://{host}:{port}")
    named = PAGE_HOST if access.is_local and not access.is_encrypted else next(iter(access.hosts), host)
    page = f"{scheme}://{named}:{port}"
    if sys.stderr.isatty():
        print_stderr(f"open {page}{LOGIN}#{sessions.new_code()}")
        print_stderr("the link logs in one browser, within 15 minutes; `agent serve --show-token` prints the token")
    else:
        # Without a terminal the output may be a log, which must not contain a code.
        print_stderr(f"open {page}/ and log in with the token: agent serve --show-token")
    if not access.is_local and not access.is_encrypted:
        print_stderr("warning: the token and everything else is sent unencrypted; use --tls-cert, or a proxy that does")


async def _run(app: "AsgiApp", listener: socket.socket, tls: tuple[str, str] | None) -> int:
    import uvicorn

    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    await uvicorn.Server(config).serve([listener])
    return 0
