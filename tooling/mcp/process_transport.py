"""Transport over stdin and stdout of a process, which is started like every other command."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, TypeAlias

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.mcp.listing import clean_text

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

# Maximum length of a message, and of unread output: a server that exceeds it is stopped.
MAX_MESSAGE_BYTES = 4_000_000
MAX_WAITING_BYTES = 16_000_000
# Time for a server to exit by itself after its input is closed.
_EXIT_S = 1.0
STDERR_BYTES = 20_000
_STDERR_SHOWN_CHARS = 300
# The line of a traceback with the error: the first one for node, the last one for Python.
_ERROR_LINE = lazy_pattern(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*:.*$", re.MULTILINE)


# Builds the request from the descriptor of its input and the receiver of its output.
BuildRequest: TypeAlias = Callable[[int, Callable[[bytes], None]], CommandRequest]


class ServerProcess:
    """A server process, running or ended; `ended` is the reason of its end."""

    def __init__(self, runner: CommandRunner, request: BuildRequest) -> None:
        self._runner = runner
        self._request = request
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""
        self._waiting_bytes = 0
        self._running: asyncio.Task[CommandOutput] | None = None
        self.ignored_lines = 0
        self.ended = ""

    @contextlib.asynccontextmanager
    async def open(self) -> "AsyncIterator[TransportStreams]":
        """Start the process; it is stopped with the context, by force if needed. Raises OSError."""
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(write_end, False)
        try:
            request = self._request(read_end, self._receive)
            self._running = asyncio.ensure_future(self._runner.run(request))
            self._running.add_done_callback(self._on_end)
            to_reader, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, to_writer = anyio.create_memory_object_stream[SessionMessage](0)
            async with anyio.create_task_group() as group, to_reader, incoming, outgoing, to_writer:
                group.start_soon(self._read, to_reader)
                group.start_soon(self._write, to_writer, write_end)
                try:
                    yield incoming, outgoing
                finally:
                    group.cancel_scope.cancel()
        finally:
            os.close(write_end)
            os.close(read_end)
            await self._stop()

    async def _stop(self) -> None:
        running = self._running
        if running is None:
            return
        await asyncio.wait({running}, timeout=_EXIT_S)
        running.cancel()
        await asyncio.wait({running})

    def _on_end(self, running: "asyncio.Task[CommandOutput]") -> None:
        if running.cancelled():
            self.ended = self.ended or "it was stopped"
        elif error := running.exception():
            self.ended = self.ended or _why_not_started(error)
        else:
            output = running.result()
            said = _last_words(clean_text(output.stderr.decode(errors="replace"), STDERR_BYTES))
            self.ended = self.ended or f"it ended with exit code {output.exit_code}" + (f": {said}" if said else "")
        self._lines.put_nowait(None)

    def _receive(self, data: bytes) -> None:
        """Split output into lines; called in the event loop as it arrives."""
        if self.ended:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._waiting_bytes += len(line)
            self._lines.put_nowait(line)
        longest = max(map(len, (*lines, self._rest)))
        if longest > MAX_MESSAGE_BYTES or self._waiting_bytes > MAX_WAITING_BYTES:
            self.ended = "it sent more than can be read"
            self._lines.put_nowait(None)
            if self._running is not None:
                self._running.cancel()

    async def _read(self, to_reader: "anyio.abc.ObjectSendStream[SessionMessage | Exception]") -> None:
        async with to_reader:
            while (line := await self._lines.get()) is not None and not self.ended:
                self._waiting_bytes -= len(line)
                message = _parse(line)
                if message is None:
                    # Printing to stdout violates the protocol, but most such servers only log there.
                    self.ignored_lines += 1
                    continue
                with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await to_reader.send(message)

    async def _write(self, messages: "anyio.abc.ObjectReceiveStream[SessionMessage]", pipe: int) -> None:
        async with messages:
            async for message in messages:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                rest = memoryview(text.encode() + b"\n")
                while rest and not self.ended:
                    try:
                        rest = rest[os.write(pipe, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(pipe)
                    except OSError:
                        return


def _why_not_started(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return f"there is no program or folder {clean_text(error.filename, _STDERR_SHOWN_CHARS)}"
    return clean_text(str(error), _STDERR_SHOWN_CHARS)


def _last_words(stderr: str) -> str:
    """Return a server's explanation of its end: the error of a traceback, otherwise its last output."""
    errors = _ERROR_LINE.findall(stderr)
    return errors[-1][:_STDERR_SHOWN_CHARS] if errors else stderr[-_STDERR_SHOWN_CHARS:]


def _parse(line: bytes) -> SessionMessage | None:
    if not line.strip():
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
