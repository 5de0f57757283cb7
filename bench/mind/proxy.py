"""A proxy between an agent and the model: counts requests and tokens, and enforces limits and sampling."""

import json
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_REPLY_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Settings that are the same for every agent, overriding its requests."""

    max_requests: int
    max_reply_tokens: int
    temperature: float
    seed: int

    def apply(self, body: dict[str, object]) -> dict[str, object]:
        """Return a request with these settings; a lower limit of the agent is kept."""
        asked = [value for name in ("max_tokens", "max_completion_tokens") if isinstance(value := body.get(name), int)]
        rest = {name: value for name, value in body.items() if name != "max_completion_tokens"}
        sampling = {"temperature": self.temperature, "seed": self.seed}
        return rest | sampling | {"max_tokens": min([self.max_reply_tokens, *asked])}


@dataclass(slots=True, kw_only=True)
class Traffic:
    """The traffic through the proxy."""

    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    model_s: float = 0.0


class CountingProxy:
    """`with CountingProxy(api_base, conditions) as proxy: ...`; past the limit of requests it answers 400."""

    def __init__(self, api_base: str, conditions: Conditions) -> None:
        self.traffic = Traffic()
        self._conditions = conditions
        self._target = urlsplit(api_base)
        # One request at a time: the model has a single slot, and two conversations would evict each other's prefix.
        self._turn = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{self._target.path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.forward(self, None)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with proxy._turn:
                    proxy.answer(self, body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing to stderr."""

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, object]) -> None:
        """Forward a request and count it, or refuse it past the limit."""
        if self.traffic.requests >= self._conditions.max_requests:
            self.traffic.refused += 1
            refusal = json.dumps({"error": {"message": "the limit of requests is reached", "code": 400}}).encode()
            handler.send_response(400)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(refusal)))
            handler.end_headers()
            handler.wfile.write(refusal)
            return
        self.traffic.requests += 1
        started = time.monotonic()
        self._count_tokens(self.forward(handler, json.dumps(self._conditions.apply(body)).encode()))
        self.traffic.model_s += time.monotonic() - started

    def forward(self, handler: BaseHTTPRequestHandler, body: bytes | None) -> bytes:
        """Send a request to the model, pass its reply on as it arrives, and return the reply."""
        connection = HTTPConnection(self._target.netloc, timeout=_REPLY_TIMEOUT_S)
        try:
            connection.request(handler.command, handler.path, body, {"Content-Type": "application/json"})
            return _pass_on(connection.getresponse(), handler)
        except (BrokenPipeError, ConnectionResetError):
            # The agent disconnected; closing the connection also stops the reply of the model.
            return b""
        finally:
            connection.close()

    def _count_tokens(self, reply: bytes) -> None:
        usage, timings = _last_object(reply, "usage"), _last_object(reply, "timings")
        self.traffic.prompt_tokens += int(usage.get("prompt_tokens", 0))
        self.traffic.completion_tokens += int(usage.get("completion_tokens", 0))
        self.traffic.cached_tokens += int(timings.get("cache_n", 0))


def _pass_on(response: HTTPResponse, handler: BaseHTTPRequestHandler) -> bytes:
    handler.send_response(response.status)
    handler.send_header("Content-Type", response.getheader("Content-Type", "application/json"))
    handler.send_header("Connection", "close")
    handler.end_headers()
    received = b""
    while part := response.read1(65536):
        received += part
        handler.wfile.write(part)
        handler.wfile.flush()
    return received


def _last_object(reply: bytes, name: str) -> dict[str, int]:
    """Return the last object with a name in a reply, which is JSON or a stream of it."""
    for line in reversed(reply.decode(errors="replace").splitlines()):
        try:
            value = json.loads(line.removeprefix("data: ")).get(name)
        except (ValueError, AttributeError):
            continue
        if isinstance(value, dict):
            return value
    return {}
