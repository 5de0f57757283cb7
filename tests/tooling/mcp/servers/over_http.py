"""A server over HTTP that prints its port; with `login` it needs a token, which its own login page gives."""

import asyncio
import json
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

server = MCPServer("over-http", log_level="CRITICAL")
listener = socket.create_server(("127.0.0.1", 0))
BASE = f"http://127.0.0.1:{listener.getsockname()[1]}"


@server.tool()
def ping() -> str:
    """Answer."""
    return "pong"


@server.custom_route("/.well-known/oauth-protected-resource/mcp", methods=["GET"])
async def resource(request: Request) -> Response:
    return JSONResponse({"resource": f"{BASE}/mcp", "authorization_servers": [BASE]})


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])
async def metadata(request: Request) -> Response:
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": f"{BASE}/authorize",
            "token_endpoint": f"{BASE}/token",
            "registration_endpoint": f"{BASE}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


@server.custom_route("/register", methods=["POST"])
async def register(request: Request) -> Response:
    return JSONResponse({**json.loads(await request.body()), "client_id": "windlass-test"}, status_code=201)


@server.custom_route("/authorize", methods=["GET"])
async def authorize(request: Request) -> Response:
    query = request.query_params
    return RedirectResponse(f"{query['redirect_uri']}?code=c-1&state={query['state']}")


@server.custom_route("/token", methods=["POST"])
async def token(request: Request) -> Response:
    return JSONResponse({"access_token": "t-1", "token_type": "Bearer", "expires_in": 3600})


async def main() -> None:
    app = server.streamable_http_app(host="127.0.0.1")

    async def guarded(scope: dict, receive: object, send: object) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization")
        if "login" in sys.argv and scope.get("path") == "/mcp" and given != b"Bearer t-1":
            about = f'Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp"'.encode()
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", about)]})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    print(f"{BASE}/mcp", flush=True)
    await uvicorn.Server(uvicorn.Config(guarded, log_level="critical")).serve([listener])


asyncio.run(main())
