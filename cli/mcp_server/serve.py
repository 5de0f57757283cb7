"""The tools of the MCP server, and its transports: stdin and stdout, or HTTP on this machine with a token."""

import asyncio
import hmac
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from agent.config.load import load_settings
from agent.config.token_file import load_or_create_token
from agent.config.user_dirs import current_folder, data_dir, os_environ
from agent.mcp_setup import mcp_folder
from agent.version import VERSION
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, ConfigError
from cli.run.progress import print_stderr
from tooling.contract.fast_dataclass import dataclass
from tooling.mcp.servers import INSTALL, MISSING_EXTRA

try:
    import uvicorn
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.shared.exceptions import MCPError
    from pydantic import BaseModel, Field
except ImportError as error:
    raise ConfigError(MISSING_EXTRA, f"install it with {INSTALL}") from error

from cli.mcp_server.served_runs import DENY, OpenQuestion, ServedRun, ServedRuns

T = TypeVar("T")

_LOOPBACK = "127.0.0.1"
_INSTRUCTIONS = (
    "Windlass runs tasks in a sandboxed folder. `run` returns when the task has ended, or when it waits for an approval"
    " or an answer, which you give with `answer` after asking your user. `status` shows a run you did not wait for."
)
_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Asgi: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
WaitS = Annotated[
    float | None, Field(description="return after this many seconds even if the run continues; by default wait", ge=0)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The command line of `agent mcp serve`."""

    is_http: bool
    port: int
    cwd: Path | None
    flags: Mapping[str, object]
    profile: str | None


class Reply(BaseModel):
    """The user's answer to a question of a run."""

    answer: str


def serve_mcp(options: ServeOptions) -> int:
    """Serve until stdin ends or a signal arrives; return the exit code."""
    environ = os_environ()
    loaded = load_settings(environ=environ, flags=options.flags, profile=options.profile)
    root = (options.cwd or current_folder()).expanduser().resolve()
    runs = ServedRuns(loaded, environ, data_dir(environ), root)
    server = build_server(runs)
    if options.is_http:
        token = load_or_create_token(mcp_folder(data_dir(environ)) / "serve-token")
        return asyncio.run(_serve_http(server, runs, options.port, token))
    return asyncio.run(_serve_stdio(server, runs))


def build_server(runs: ServedRuns) -> "MCPServer[None]":
    """Return the server with its four tools."""
    server: MCPServer[None] = MCPServer("windlass", version=VERSION, instructions=_INSTRUCTIONS, log_level="CRITICAL")

    @server.tool()
    async def run(
        context: Context, prompt: str, folder: str = "", session: str = "", wait_s: WaitS = None
    ) -> dict[str, Any]:
        """Run a task. `folder` is one below the server's; `session` continues an earlier session by its id."""
        return await _follow(_start(runs, prompt, folder, session), context, wait_s)

    @server.tool()
    async def plan(context: Context, prompt: str, folder: str = "") -> dict[str, Any]:
        """Plan a task without running it; the plan is TOML that `agent run --plan` runs."""
        return await _follow(_start(runs, prompt, folder, plan_only=True), context, None)

    @server.tool()
    async def status(context: Context, run_id: str, wait_s: WaitS = 0) -> dict[str, Any]:
        """Show a run: what it does, what it waits for, or its answer."""
        return await _follow(_get(runs, run_id), context, wait_s)

    @server.tool()
    async def answer(context: Context, run_id: str, id: str, answer: str, wait_s: WaitS = None) -> dict[str, Any]:
        """Answer what a run waits for, then wait for it again: allow or deny an approval, or answer a question."""
        found = _get(runs, run_id)
        _call(lambda: found.answer(id, answer))
        return await _follow(found, context, wait_s)

    return server


def _start(runs: ServedRuns, prompt: str, folder: str, session: str = "", *, plan_only: bool = False) -> ServedRun:
    return _call(lambda: runs.start(prompt, folder=folder, session=session, plan_only=plan_only))


def _get(runs: ServedRuns, run_id: str) -> ServedRun:
    return _call(lambda: runs.get(run_id))


def _call(work: Callable[[], T]) -> T:
    try:
        return work()
    except AgentError as error:
        raise ToolError(f"{error.message}. {error.hint}".rstrip(". ")) from error


async def _follow(run: ServedRun, context: Context, wait_s: float | None) -> dict[str, Any]:
    """Wait for the run, report progress, and let a capable client ask its user."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    run.on_progress = lines.put_nowait
    reporting = asyncio.ensure_future(_report(run, lines, context))
    try:
        can_ask = _can_ask(context)
        await run.wait(wait_s)
        while run.open and can_ask:
            can_ask = await _ask_user(run, next(iter(run.open.values())), context)
            if can_ask:
                await run.wait(wait_s)
    finally:
        reporting.cancel()
        run.on_progress = lambda line: None
    return dict(run.describe())


async def _report(run: ServedRun, lines: "asyncio.Queue[str]", context: Context) -> None:
    while True:
        line = await lines.get()
        await context.report_progress(len(run.progress), None, line)


def _can_ask(context: Context) -> bool:
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


async def _ask_user(run: ServedRun, question: OpenQuestion, context: Context) -> bool:
    """Ask through the client; False if it cannot, in which case the other agent answers with the tool."""
    options = f" ({' / '.join(question.options)})" if question.options else ""
    try:
        reply = await context.elicit(f"{question.text}{options}", Reply)
    except MCPError:
        return False
    if question.id in run.open:
        run.answer(question.id, reply.data.answer if reply.action == "accept" else DENY)
    return True


async def _serve_stdio(server: "MCPServer[None]", runs: ServedRuns) -> int:
    serving = asyncio.ensure_future(server.run_stdio_async())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        return exit_codes.TERMINATED
    finally:
        await runs.close()
    return exit_codes.OK


async def _serve_http(server: "MCPServer[None]", runs: ServedRuns, port: int, token: str) -> int:
    app = _with_token(server.streamable_http_app(host=_LOOPBACK), token)
    config = uvicorn.Config(app, log_level="critical", access_log=False)
    http = uvicorn.Server(config)
    listener = socket.create_server((_LOOPBACK, port))
    print_stderr(f"listening on http://{_LOOPBACK}:{listener.getsockname()[1]}/mcp")
    print_stderr(f"header: Authorization: Bearer {token}")
    try:
        await http.serve([listener])
    finally:
        await runs.close()
    return exit_codes.OK


def _with_token(app: _Asgi, token: str) -> _Asgi:
    """Refuse requests without the token, because every program on this machine can reach the port."""
    expected = f"Bearer {token}".encode()

    async def guarded(scope: _Scope, receive: _Receive, send: _Send) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] != "lifespan" and not hmac.compare_digest(given, expected):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
            return
        await app(scope, receive, send)

    return guarded
