"""Checks of every request before the app handles it: host, origin, rate, token, size. Adds headers to every reply."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

from agent.api.access import Access, BrowserSessions, Credential
from agent.api.replies import error_reply
from tooling.contract.fast_dataclass import dataclass

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"
CALLBACK = "/api/v1/callback"
LOGIN = "/login"
STATIC = "/static/"
# Pages load nothing from other hosts, and text in a page cannot become code.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types page"
)
_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With no-referrer, browsers would send the forms of our own page with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_PUBLIC = frozenset({"/api/v1/health", LOGIN, "/favicon.ico"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BODY_TIMEOUT_S = 30.0
_MAX_CLIENTS = 10_000
# A wrong token costs as much as this many requests, so that guessing exhausts the rate limit quickly.
_FAILURE_COST = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Verified credentials of a request; `cookie` is the session cookie of a browser."""

    credential: Credential | None = None
    cookie: str = ""


class RateLimiter:
    """A token bucket per client: it holds twice `rate` requests and refills by `rate` a second."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> bool:
        """Take a request from a client's bucket; False if it is empty."""
        now = self._now()
        level, then = self._buckets.pop(client, (self._rate * 2, now))
        level = min(self._rate * 2, level + (now - then) * self._rate)
        is_allowed = level >= 1.0
        self._buckets[client] = (level - cost if is_allowed else level, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return is_allowed


class Guard:
    """Passes a request to the app or answers it itself. Sets `scope["identity"]`."""

    def __init__(self, app: AsgiApp, access: Access, sessions: BrowserSessions) -> None:
        self._app = app
        self._access = access
        self._sessions = sessions
        self._rates = RateLimiter(access.requests_per_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._on_request(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _on_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        send = self._with_headers(scope, origin, self._counting_failures(scope, send))
        refusal = self._refuse_place(scope, headers, origin) or self._refuse_client(scope, headers)
        if refusal is None and scope["method"] == "OPTIONS" and origin in self._access.origins:
            refusal = _preflight()
        if refusal is None:
            refusal, receive = await self._read_body(headers, receive)
        await (refusal or self._app)(scope, receive, send)

    def _refuse_place(self, scope: Scope, headers: Headers, origin: str) -> Response | None:
        """Refuse requests from foreign pages or for a foreign host name."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.knows_host(hosts[0]):
            return error_reply(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server does not have that name",
                hint="use the address it printed; --allow-host adds a name",
            )
        if origin and not self._access.knows_origin(origin, hosts[0]):
            return error_reply(
                HTTPStatus.FORBIDDEN, "requests of other pages are refused", hint="--allow-origin allows one"
            )
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not origin
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if is_foreign and not is_navigation:
            return error_reply(HTTPStatus.FORBIDDEN, "requests of other pages are refused")
        return None

    def _refuse_client(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse clients that exceed the rate limit or are not authenticated."""
        client = (scope.get("client") or ("",))[0]
        if not self._rates.take(client):
            return error_reply(HTTPStatus.TOO_MANY_REQUESTS, "too many requests", headers={"Retry-After": "1"})
        path, method = scope["path"], scope["method"]
        identity = self._identify(headers)
        scope["identity"] = identity
        if path in _PUBLIC or path.startswith(STATIC) or (method == "OPTIONS" and path.startswith(API)):
            return None
        if headers.get("authorization") and identity.credential is None:
            self._rates.take(client, _FAILURE_COST)
        if identity.credential in (None, "callback") and not (identity.credential and path == CALLBACK):
            return _login_needed(path, method)
        needs_proof = identity.credential == "session" and path.startswith(API) and method not in _SAFE_METHODS
        if needs_proof and not self._sessions.is_csrf_token(headers.get("x-csrf-token", ""), identity.cookie):
            return error_reply(HTTPStatus.FORBIDDEN, "the session's CSRF token is missing", hint="reload the page")
        return None

    def _identify(self, headers: Headers) -> Identity:
        if authorization := headers.get("authorization"):
            return Identity(credential=self._access.check_bearer(authorization))
        cookie = _cookie(headers.get("cookie", ""), self._access.cookie_name)
        if cookie and self._sessions.is_valid(cookie):
            return Identity(credential="session", cookie=cookie)
        return Identity()

    async def _read_body(self, headers: Headers, receive: Receive) -> tuple[Response | None, Receive]:
        """Read the body, limited in size and time; return a refusal, or a `receive` that replays it to the app."""
        too_large = error_reply(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {self._access.max_body_bytes:,} bytes"
        )
        length = headers.get("content-length", "")
        if length and (not length.isdecimal() or int(length) > self._access.max_body_bytes):
            return too_large, receive
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_TIMEOUT_S):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    if len(body) > self._access.max_body_bytes:
                        return too_large, receive
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return error_reply(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time"), receive
        pending = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> MutableMapping[str, Any]:
            return pending.pop() if pending else await receive()

        return None, replay

    def _counting_failures(self, scope: Scope, send: Send) -> Send:
        """Charge for a wrong token in the form as for one in a header."""

        async def send_and_count(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.UNAUTHORIZED:
                self._rates.take((scope.get("client") or ("",))[0], _FAILURE_COST)
            await send(message)

        return send_and_count if scope["path"] == LOGIN else send

    def _with_headers(self, scope: Scope, origin: str, send: Send) -> Send:
        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
                if origin in self._access.origins:
                    headers["access-control-allow-origin"] = origin
                    headers.add_vary_header("Origin")
                if self._access.is_encrypted:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        return send_with_headers


def _login_needed(path: str, method: str) -> Response:
    is_page = not path.startswith((API, "/metrics", "/openapi.json"))
    if is_page and method in ("GET", "HEAD"):
        target = LOGIN if path == "/" else f"{LOGIN}?next={quote(path)}"
        return RedirectResponse(target, HTTPStatus.SEE_OTHER)
    return error_reply(
        HTTPStatus.UNAUTHORIZED,
        "a valid token is needed",
        hint="send the header Authorization: Bearer TOKEN; `agent serve --show-token` prints it",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _preflight() -> Response:
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST, DELETE",
        "Access-Control-Allow-Headers": "authorization, content-type, last-event-id, idempotency-key",
        "Access-Control-Max-Age": "600",
    }
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=allowed)


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
