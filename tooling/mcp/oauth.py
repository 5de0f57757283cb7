"""OAuth login to a server: the SDK implements the protocol, and the tokens are in a file only this user can read."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel

from tooling.contract.result import ToolError
from tooling.files.atomic_write import write_atomic
from tooling.mcp.servers import McpServer

if TYPE_CHECKING:
    from tooling.mcp.connection import McpHost

LOGIN_TIMEOUT_S = 300.0
_LOOPBACK = "127.0.0.1"
_MAX_REQUEST_BYTES = 16_000
_PAGE = b"You are logged in. You can close this page."
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"


class _Stored(BaseModel):
    """The file of one server; the tokens belong to its URL and are sent nowhere else."""

    url: str
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None


class TokenFile:
    """Tokens and registration of one server; implements the SDK's storage."""

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._stored = _Stored(url=url)
        with contextlib.suppress(OSError, ValueError):
            found = _Stored.model_validate_json(path.read_bytes())
            if found.url == url:
                self._stored = found

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        return self._stored.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens."""
        self._stored.tokens = tokens
        self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration of this program at the server."""
        return self._stored.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registration."""
        self._stored.client = client_info
        self._save()

    @property
    def port(self) -> int:
        """Return the registered port of the login callback; 0 for any."""
        registered = self._stored.client.redirect_uris if self._stored.client else None
        return (registered[0].port or 0) if registered else 0

    def _save(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = json.loads(self._stored.model_dump_json(exclude_none=True))
        write_atomic(self._path, json.dumps(document).encode())


class _Callback:
    """A loopback server that waits for the browser to return with the code."""

    def __init__(self) -> None:
        self._received: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(self, port: int, stack: contextlib.AsyncExitStack) -> str:
        """Listen, and return the address for the browser."""
        try:
            server = await asyncio.start_server(self._answer, _LOOPBACK, port)
        except OSError:
            server = await asyncio.start_server(self._answer, _LOOPBACK, 0)
        await stack.enter_async_context(server)
        return f"http://{_LOOPBACK}:{server.sockets[0].getsockname()[1]}/callback"

    async def wait(self) -> AuthorizationCodeResult:
        """Return the code from the browser."""
        async with asyncio.timeout(LOGIN_TIMEOUT_S):
            return await self._received

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            query = parse_qs(urlsplit(head[:_MAX_REQUEST_BYTES].split(b" ")[1].decode()).query)
            if "code" in query and not self._received.done():
                result = AuthorizationCodeResult(
                    code=query["code"][0], state=query.get("state", [None])[0], iss=query.get("iss", [None])[0]
                )
                self._received.set_result(result)
            elif "error" in query and not self._received.done():
                self._received.set_exception(ToolError(f"the login was refused: {query['error'][0]}"))
            writer.write(_REPLY % (len(_PAGE), _PAGE))
            await writer.drain()


async def build_auth(server: McpServer, host: "McpHost", stack: contextlib.AsyncExitStack) -> httpx2.Auth:
    """Return the authentication of a server; it is inactive until the server requests it."""
    storage = TokenFile(host.folder / "tokens" / f"{server.name}.json", server.url)
    login = host.login
    callback = _Callback()
    address = await callback.serve(storage.port, stack) if login else f"http://{_LOOPBACK}/callback"

    async def show(url: str) -> None:
        if login is None:
            raise ToolError(f"it needs a login; run `agent mcp test {server.name}`")
        await login.show(url)

    return OAuthClientProvider(
        server_url=server.url,
        client_metadata=OAuthClientMetadata(
            client_name="Windlass",
            redirect_uris=[AnyUrl(address)],
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
        ),
        storage=storage,
        redirect_handler=show,
        callback_handler=callback.wait,
    )
