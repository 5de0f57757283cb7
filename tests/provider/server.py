"""The provider: an HTTP/1.1 server on loopback that answers from a script and records every request."""

import asyncio
import json
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

from tests.provider.faults import fault_response
from tests.provider.replies import Form, Hang, HttpResponse, KeepAlives, Pace, Pause, Reply, Reset, ResponsePart
from tests.provider.responses import build_response, error_body, json_response


@dataclass(slots=True, kw_only=True)
class ReceivedRequest:
    """One received request; `answered_at` is when the last byte of its response was written, `sent_at` each part."""

    method: str
    path: str
    form: Form
    headers: Mapping[str, str]
    body: dict[str, object]
    raw: bytes
    connection: int
    received_at: float
    answered_at: float | None = None
    sent_at: list[float] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault by name (tests/provider/faults.py)."""

    name: str
    retry_after: str | None = None


ScriptedReply: TypeAlias = Reply | Fault | HttpResponse
Responder: TypeAlias = Callable[[ReceivedRequest], ScriptedReply]


class Provider:
    """`async with Provider() as provider: provider.reply(Text("hi"))`; after its script it answers 500."""

    def __init__(
        self, *script: ScriptedReply, otherwise: ScriptedReply | Responder | None = None, pace: Pace | None = None
    ) -> None:
        self._script: deque[ScriptedReply | Responder] = deque(script)
        self._default = otherwise
        self._pace = pace
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.port = 0

    @property
    def base_url(self) -> str:
        """Return the URL for `api_base`; it serves both wire formats."""
        return f"http://127.0.0.1:{self.port}/v1"

    def reply(self, *replies: ScriptedReply | Responder) -> None:
        """Script replies, or functions that choose one for a request."""
        self._script.extend(replies)

    def fault(self, name: str, *, times: int = 1, retry_after: str | None = None) -> None:
        """Script a fault."""
        self._script.extend([Fault(name=name, retry_after=retry_after)] * times)

    def drop_script(self) -> None:
        """Forget scripted replies that nobody asked for."""
        self._script.clear()

    async def stop_listening(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_listening()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve_connection(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client disconnected or the provider was stopped.
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        while True:
            request = await _read_request(reader, connection)
            self.requests.append(request)
            response = self._choose_response(request)
            await _send_parts(response.before, reader, writer)
            writer.write(_encode_head(response))
            await _send_parts(response.parts, reader, writer, sent_at=request.sent_at)
            # Set before the last byte, so that no client can receive it earlier than recorded.
            request.answered_at = time.monotonic()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    def _choose_response(self, request: ReceivedRequest) -> HttpResponse:
        if request.method == "GET":
            return json_response(200, {"object": "list", "data": [{"id": "test-model", "object": "model"}]})
        chosen = self._script.popleft() if self._script else self._default
        if chosen is None:
            return json_response(500, error_body(request.form, "api_error", "nothing is scripted for this request"))
        scripted = chosen(request) if callable(chosen) else chosen
        if isinstance(scripted, Reply):
            model, is_streamed = str(request.body.get("model")), bool(request.body.get("stream"))
            return build_response(
                scripted, request.form, model, self._pace, is_streamed=is_streamed, turn=len(self.requests)
            )
        if isinstance(scripted, Fault):
            response = fault_response(scripted.name, request.form, retry_after=scripted.retry_after)
            return _echo_key(response, request) if scripted.name == "auth" else response
        return scripted


def _echo_key(response: HttpResponse, request: ReceivedRequest) -> HttpResponse:
    """Quote the key in the refusal, as providers do, so that tests can check that it is not repeated."""
    key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    parts = tuple(part.replace(b"{key}", key.encode()) for part in response.parts if isinstance(part, bytes))
    return HttpResponse(
        status=response.status, headers=response.headers, content_type=response.content_type, parts=parts
    )


async def _read_request(reader: asyncio.StreamReader, connection: int) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(
        method=method,
        path=path,
        form="anthropic" if path.endswith("/messages") else "openai",
        headers=headers,
        body=json.loads(raw) if raw else {},
        raw=raw,
        connection=connection,
        received_at=time.monotonic(),
    )


def _encode_head(response: HttpResponse) -> bytes:
    headers = {"Content-Type": response.content_type, "Transfer-Encoding": "chunked", **response.headers}
    lines = [f"HTTP/1.1 {response.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _send_parts(
    parts: tuple[ResponsePart, ...],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    sent_at: list[float] | None = None,
) -> None:
    """Play the parts of a response; those of its body are written, and the time of each is noted."""
    for part in parts:
        match part:
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
            case Hang():
                await writer.drain()
                await reader.read()
                raise ConnectionResetError("the client disconnected")
            case Reset():
                await writer.drain()
                _reset(writer)
            case KeepAlives(every_s=every_s):
                await _keep_alive(writer, every_s)
            case _ if part and sent_at is not None:
                # Noted before the write, so that no client can receive it earlier than recorded.
                sent_at.append(time.monotonic())
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await writer.drain()


async def _keep_alive(writer: asyncio.StreamWriter, every_s: float) -> None:
    comment = b": still working\n\n"
    while True:
        writer.write(b"%x\r\n%b\r\n" % (len(comment), comment))
        await writer.drain()
        await asyncio.sleep(every_s)


def _reset(writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionResetError("scripted reset")
