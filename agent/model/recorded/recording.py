"""Record every model exchange to a cassette (`--record FILE`)."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from agent.model.faults import ModelFault
from agent.model.port import ModelClient, ModelReply, ModelRequest, StreamItem, closing_stream
from agent.model.recorded.cassette import encode_without_defaults, header_line, record_exchange
from agent.model.recorded.normal_form import Placeholders, map_strings
from agent.vocabulary.errors import InputError


class RecordingClient:
    """Forwards a stream and records each finished exchange without secrets and local paths."""

    def __init__(
        self, inner: ModelClient, path: Path, volatile: Mapping[str, str], redact: Callable[[str], str] = str
    ) -> None:
        self._inner = inner
        self._path = path
        self._placeholders = Placeholders(volatile)
        self._redact = redact
        self._has_header = False
        self._file = _open_private(path)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield the items of the inner stream; the exchange is written before its reply is yielded."""
        try:
            async with closing_stream(self._inner.stream(request)) as items:
                async for item in items:
                    if isinstance(item, ModelReply):
                        self._write(request, item)
                    yield item
        except ModelFault as fault:
            self._write(request, fault)
            raise

    async def close(self) -> None:
        """Close the cassette and the inner client."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        await self._inner.close()

    def _write(self, request: ModelRequest, outcome: ModelReply | ModelFault) -> None:
        exchange = map_strings(encode_without_defaults(record_exchange(request, outcome)), self._clean)
        line = json.dumps(exchange, ensure_ascii=False) + "\n"
        try:
            if not self._has_header:
                # An older cassette is replaced only now, so a run without requests does not destroy it.
                os.ftruncate(self._file, 0)
                line = f"{header_line()}\n{line}"
                self._has_header = True
            _write_all(self._file, line.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise InputError(f"cannot write the cassette {self._path}: {error}") from error

    def _clean(self, text: str) -> str:
        return self._redact(self._placeholders.insert(text))


def _open_private(path: Path) -> int:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(file, 0o600)
    except OSError as error:
        raise InputError(f"cannot write the cassette {path}: {error}") from error
    return file


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
