"""Transport over streamable HTTP, with the user's headers or an OAuth login."""

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tooling.contract.result import ToolError
from tooling.mcp.oauth import build_auth
from tooling.mcp.servers import McpServer

if TYPE_CHECKING:
    from tooling.mcp.connection import McpHost

# Limit of one response, which may be a stream of events.
MAX_RESPONSE_BYTES = 32_000_000


async def open_http(server: McpServer, host: "McpHost", stack: contextlib.AsyncExitStack) -> Any:
    """Return the transport to a server; its connections are closed with the stack."""
    has_key = any(name.lower() == "authorization" for name in server.headers)
    auth = None if has_key else await build_auth(server, host, stack)
    client = create_mcp_http_client(headers=dict(server.headers), auth=auth)
    client.event_hooks = {"response": [_limit_response]}
    await stack.enter_async_context(client)
    return streamable_http_client(server.url, http_client=client)


async def _limit_response(response: httpx2.Response) -> None:
    response.stream = _LimitedStream(response.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of a response, up to a limit."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_RESPONSE_BYTES
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise ToolError("it sent more than can be read")
            yield chunk

    async def aclose(self) -> None:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()
