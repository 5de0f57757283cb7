"""The connection to one server: opened on first use, one call at a time, with limits."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from tooling.contract.action import ActionGate
from tooling.contract.command import CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Asker
from tooling.contract.result import TIMED_OUT, ToolError
from tooling.mcp.listing import ServerListing
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.servers import INSTALL, MISSING_EXTRA, McpServer, ServerProblem, expand_variables
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.page import wrap_untrusted

if TYPE_CHECKING:
    from tooling.mcp.client import McpClient

T = TypeVar("T")

# Limit of restarts of a server that crashes repeatedly.
MAX_STARTS = 3
SANDBOX_HINT = (
    " Its sandbox has no network and few files; the user can change that in mcp.json, with allow_net, read_dirs or "
    '"sandbox": false.'
)
_CLOSE_S = 5.0


class Sampler(Protocol):
    """Sends requests of a server to the run's model."""

    async def sample(self, system: str, messages: Iterable[tuple[str, str]], max_tokens: int, ctx: ExecCtx) -> str:
        """Return the reply to messages, each a role and a text. Raises ToolError."""
        ...


class ServerSandbox(Protocol):
    """The sandbox that runs the process of one server."""

    @property
    def runner(self) -> CommandRunner:
        """The runner that starts the process."""
        ...

    async def close(self) -> None:
        """Stop everything that runs in it."""
        ...


class Login(Protocol):
    """Lets the user log in to a server in a browser."""

    async def show(self, url: str) -> None:
        """Show the address where the user logs in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class McpHost:
    """Services that servers get from the run: sandboxes, and access to the user and the model.

    `folder` stores listings and tokens. Without `login` a server that requires one cannot be used.
    """

    workspace: Path
    folder: Path
    environ: Mapping[str, str]
    open_sandbox: Callable[[McpServer], ServerSandbox]
    asker: Asker
    gate: ActionGate
    version: str
    sampler: Sampler | None = None
    login: Login | None = None
    warn: Callable[[str], None] = field(default=lambda message: None)


class ServerConnection:
    """One server of a run or a session."""

    def __init__(self, server: McpServer, host: McpHost, store: ListingStore) -> None:
        self.server = server
        self._host = host
        self._store = store
        self._lock = asyncio.Lock()
        self._client: McpClient | None = None
        self._starts = 0

    def attach(self, host: McpHost, store: ListingStore) -> None:
        """Serve another run: the server keeps running, connected to the user and the model of that run."""
        self._host = host
        self._store = store
        self._starts = 0
        if self._client is not None:
            self._client.attach(host)

    async def refresh(self, ctx: ExecCtx) -> ServerListing:
        """Request the listing of the server, and store it."""
        return await self.use(ctx, self._list)

    async def use(self, ctx: ExecCtx, work: "Callable[[McpClient], Awaitable[T]]") -> T:
        """Run `work` with the server, started if needed; every failure is a ToolError."""
        async with self._lock:
            client = await self._get_client()
            try:
                return await client.limit(self.server.timeout_s, ctx, lambda: work(client))
            except TimeoutError as error:
                await self.close()
                raise self._timed_out("answer", self.server.timeout_s) from error
            except ToolError:
                raise
            except Exception as error:
                reason = client.describe_failure(error)
                if client.has_ended:
                    await self.close()
                raise self._failed("failed", reason) from error

    async def close(self) -> None:
        """Stop the server; it is restarted on the next use."""
        client, self._client = self._client, None
        if client is not None:
            await client.close(_CLOSE_S)

    async def _list(self, client: "McpClient") -> ServerListing:
        listing = await client.list_all()
        self._store.save(self.server, listing)
        return listing

    async def _get_client(self) -> "McpClient":
        if self._client is not None and not self._client.has_ended:
            return self._client
        await self.close()
        if self._starts >= MAX_STARTS:
            raise ToolError(f"The MCP server {self.server.name} has ended {MAX_STARTS} times and is not started again.")
        self._starts += 1
        client = await self._load_client()
        try:
            await client.start(self.server.start_timeout_s)
        except TimeoutError as error:
            await client.close(_CLOSE_S)
            raise self._timed_out("start", self.server.start_timeout_s, self._sandbox_hint()) from error
        except Exception as error:
            await client.close(_CLOSE_S)
            reason = client.describe_failure(error)
            raise self._failed("could not be started", reason.rstrip("."), self._sandbox_hint()) from error
        except asyncio.CancelledError:
            await client.close(_CLOSE_S)
            raise
        self._client = client
        return client

    async def _load_client(self) -> "McpClient":
        try:
            server = expand_variables(self.server, self._host.environ)
        except ServerProblem as problem:
            raise ToolError(f"The MCP server {self.server.name} cannot be used: {problem}.") from problem
        # In a thread: importing the SDK takes seconds, and the screen must not freeze.
        return (await asyncio.to_thread(load_client))(server, self._host)

    def _sandbox_hint(self) -> str:
        """Return a hint about a program that lacks something in its sandbox."""
        return SANDBOX_HINT if self.server.argv and self.server.is_sandboxed else ""

    def _failed(self, what: str, reason: str, hint: str = "") -> ToolError:
        """Return a failure whose reason the server may have written: its errors, or what it printed."""
        name = self.server.name
        marked = wrap_untrusted(strip_invisible(reason)[0], origin=f"MCP server {name}")
        for_model = f"The MCP server {name} {what}.{hint} The reason:\n{marked}"
        return ToolError(f"The MCP server {name} {what}: {reason}.{hint}", for_model=for_model)

    def _timed_out(self, what: str, limit_s: float, hint: str = "") -> ToolError:
        message = f"The MCP server {self.server.name} did not {what} within {limit_s:g} s, so it was ended.{hint}"
        return ToolError(message, exit_code=TIMED_OUT, status="timeout")


class KeptConnections:
    """The servers of a session: each keeps its state between runs, and ends with the session."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, ServerConnection]] = {}
        self._closing: set[asyncio.Future[None]] = set()

    def open(self, server: McpServer, surroundings: object, host: McpHost, store: ListingStore) -> ServerConnection:
        """Return the connection for the next run; a new one if the server's configuration or environment changed."""
        known = self._kept.get(server.name)
        if known is not None and (known[1].server, known[0]) == (server, surroundings):
            known[1].attach(host, store)
            return known[1]
        if known is not None:
            closing = asyncio.ensure_future(known[1].close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        connection = ServerConnection(server, host, store)
        self._kept[server.name] = (surroundings, connection)
        return connection

    async def close(self) -> None:
        """Stop all servers."""
        await asyncio.gather(*(connection.close() for _, connection in self._kept.values()), *self._closing)


def load_client() -> "type[McpClient]":
    """Import the client. Raises ToolError if the extra is not installed."""
    try:
        from tooling.mcp.client import McpClient
    except ImportError as error:
        raise ToolError(f"{MISSING_EXTRA}: {INSTALL}") from error
    return McpClient
