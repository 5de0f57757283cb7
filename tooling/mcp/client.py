"""Client of one server, based on the MCP SDK. Importing it takes seconds, so it is imported with the first use."""

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tooling.contract.command import CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.mcp.listing import ServerListing, check_prompts, check_resources, check_tools, clean_text
from tooling.mcp.process_transport import STDERR_BYTES, ServerProcess
from tooling.mcp.server_requests import ServerRequests
from tooling.mcp.servers import McpServer

if TYPE_CHECKING:
    from tooling.mcp.connection import McpHost, ServerSandbox

T = TypeVar("T")

# No limit of its own: a server ends with its run or session.
_NO_LIMIT_S = 7 * 24 * 3600.0
_MAX_PAGES = 20
_REASON_CHARS = 400
# The SDK logs every irregularity of a server; relevant ones reach the user as a result or a warning.
for _name in ("mcp", "httpx2", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReply:
    """Reply of a server: text, and images unchanged."""

    text: str
    images: tuple[bytes, ...] = ()
    is_error: bool = False


class McpClient:
    """A connection that is open between `start` and `close`, in a separate task."""

    def __init__(self, server: McpServer, host: "McpHost") -> None:
        self._server = server
        self._host = host
        self._requests = ServerRequests(server.name, host)
        self._sandbox: ServerSandbox | None = None
        self._process: ServerProcess | None = None
        self._stop = asyncio.Event()
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def attach(self, host: "McpHost") -> None:
        """Connect the server to the user and the model of another run."""
        self._host = host
        self._requests.attach(host)

    @property
    def has_ended(self) -> bool:
        """Whether the server has exited."""
        has_process_ended = self._process is not None and bool(self._process.ended)
        return has_process_ended or self._task is None or self._task.done()

    async def start(self, timeout_s: float) -> None:
        """Start or connect to the server. Raises TimeoutError, and any exception of the SDK."""
        self._task = asyncio.ensure_future(self._run())
        waiting: set[asyncio.Future[Any]] = {self._opened, self._task}
        async with asyncio.timeout(timeout_s):
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not self._opened.done():
            self._task.result()
            raise ToolError("the connection was closed")

    async def limit(self, timeout_s: float, ctx: ExecCtx, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` within a time limit, whose clock stops while the user or the model is asked."""
        async with asyncio.timeout(timeout_s) as clock:
            with self._requests.serve(ctx, clock):
                return await work()

    async def close(self, timeout_s: float) -> None:
        """Close the connection and the process, by force if needed."""
        self._stop.set()
        if self._task is not None:
            # A connection that never opened cannot be closed cleanly: waiting for that would use up the timeout.
            if self._opened.done():
                await asyncio.wait({self._task}, timeout=timeout_s)
            self._task.cancel()
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                # Retrieve the exception so asyncio does not log it.
                self._task.exception()
        if self._sandbox is not None:
            await self._sandbox.close()
            self._sandbox = None

    async def _run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            client = Client(
                await self._open_transport(stack),
                cache=None,
                client_info=mcp_types.Implementation(name="windlass", version=self._host.version),
                sampling_callback=self._requests.sample if self._host.sampler else None,
                elicitation_callback=self._requests.elicit,
                list_roots_callback=self._requests.list_roots,
            )
            await stack.enter_async_context(client)
            self._opened.set_result(client)
            await self._stop.wait()

    async def _open_transport(self, stack: contextlib.AsyncExitStack) -> Any:
        if self._server.url:
            # Imported only for servers on the network, because it loads an HTTP client.
            from tooling.mcp.http_transport import open_http

            return await open_http(self._server, self._host, stack)
        self._sandbox = self._host.open_sandbox(self._server)
        self._process = ServerProcess(self._sandbox.runner, self._command)
        return self._process.open()

    def _command(self, stdin: int, on_output: Callable[[bytes], None]) -> CommandRequest:
        return CommandRequest(
            argv=self._server.argv,
            cwd=self._host.workspace / self._server.cwd,
            env=self._server.env,
            stdin=stdin,
            timeout_s=_NO_LIMIT_S,
            merge_stderr=False,
            cap_bytes=STDERR_BYTES,
            on_output=on_output,
        )

    async def list_all(self) -> ServerListing:
        """Return the usable tools, prompts and resources of the server."""
        client = self._opened.result()
        capabilities = client.server_capabilities
        tools, problems = check_tools(self._server.name, await _pages(client.list_tools, "tools"))
        prompts = await _pages(client.list_prompts, "prompts") if capabilities.prompts else []
        resources = await _pages(client.list_resources, "resources") if capabilities.resources else []
        if self._process is not None and self._process.ignored_lines:
            problems = (*problems, "it prints text that is no message to stdout, which was ignored")
        return ServerListing(
            tools=tools, prompts=check_prompts(prompts), resources=check_resources(resources), problems=problems
        )

    async def call_tool(
        self, name: str, arguments: Mapping[str, object], on_progress: Callable[[str], None]
    ) -> ServerReply:
        """Call a tool. Raises any exception of the SDK."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            done = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            on_progress(clean_text(f"{done} {message or ''}", _REASON_CHARS))

        result = await self._opened.result().call_tool(name, dict(arguments), progress_callback=report)
        return _reply(result)

    async def read_resource(self, uri: str) -> ServerReply:
        """Return the text of a resource."""
        result = await self._opened.result().read_resource(uri)
        return ServerReply(text="\n\n".join(_resource_text(part) for part in result.contents))

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """Return the text of a prompt."""
        result = await self._opened.result().get_prompt(name, dict(arguments))
        return "\n\n".join(_content_text(message.content) for message in result.messages)

    def describe_failure(self, error: BaseException) -> str:
        """Return the reason of a failure, in one line."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if self._process is not None and self._process.ended:
            return self._process.ended
        if isinstance(error, (MCPError, ToolError, OSError)):
            return clean_text(str(error), _REASON_CHARS) or type(error).__name__
        said = " ".join(clean_text(str(error), _REASON_CHARS).split())
        return f"its answer breaks the protocol: {said or type(error).__name__}"


async def _pages(fetch: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Return all pages of a list, up to a limit, because a server may never end it."""
    found: list[Any] = []
    cursor = None
    for _ in range(_MAX_PAGES):
        page = await fetch(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _reply(result: mcp_types.CallToolResult) -> ServerReply:
    texts = [_content_text(part) for part in result.content]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    images = [_decode(part.data) for part in result.content if isinstance(part, mcp_types.ImageContent)]
    return ServerReply(
        text="\n".join(filter(None, texts)), images=tuple(filter(None, images)), is_error=bool(result.is_error)
    )


def _content_text(part: object) -> str:
    match part:
        case mcp_types.TextContent(text=text):
            return text
        case mcp_types.EmbeddedResource(resource=resource):
            return _resource_text(resource)
        case mcp_types.ResourceLink(uri=uri, name=name):
            return f"[resource {name}: {uri}]"
        case mcp_types.ImageContent():
            return ""
        case mcp_types.AudioContent(mime_type=kind):
            return f"[audio {kind}, not shown]"
    return f"[{type(part).__name__}, not shown]"


def _resource_text(resource: object) -> str:
    if isinstance(resource, mcp_types.TextResourceContents):
        return resource.text
    return f"[binary resource {getattr(resource, 'uri', '')}, not shown]"


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return b""
