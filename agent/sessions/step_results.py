"""`steps/`: complete results of finished steps by cache key, each verified when it is read."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.protocol.masking import mask_strings
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.contract.json_text import json_encoder
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_many
from tooling.files.open_regular import read_regular

FORMAT_VERSION = 1
_to_text = json_encoder(sort_keys=True)
_KEY = lazy_pattern(r"[0-9a-f]{16,128}")


class StepResultStore:
    """The step cache of one session; a file that is damaged or belongs to another key is a miss."""

    def __init__(self, folder: Path, redact: Callable[[str], str] = lambda text: text) -> None:
        self._folder = folder
        self._redact = redact
        self._waiting: list[tuple[Path, bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def get(self, key: str) -> ExecutorResponse | None:
        """Return the stored result of a key, or None."""
        try:
            return read_result(self.path_for(key), key)
        except (OSError, ValueError, RecursionError):
            return None

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Store a result durably; results that arrive during a write share the next one. Raises OSError."""
        loop = asyncio.get_running_loop()
        saved: asyncio.Future[None] = loop.create_future()
        data = encode_result(key, mask_strings(response, self._redact))
        self._waiting.append((self.path_for(key), data, saved))
        if self._writer is None:
            self._writer = loop.create_task(self._write_waiting())
        # If the caller is cancelled, so is this future, but not the write, which also has the results of others.
        await saved

    def path_for(self, key: str) -> Path:
        """Return the file of a key. Raises ValueError for a malformed key."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not a cache key")
        return self._folder / f"{key}.json"

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                results = await asyncio.to_thread(self._write, [(path, data) for path, data, _ in batch])
                for problem, (_, _, saved) in zip(results, batch, strict=True):
                    if saved.done():
                        continue
                    saved.set_result(None) if problem is None else saved.set_exception(problem)
        finally:
            self._writer = None

    def _write(self, batch: Sequence[tuple[Path, bytes]]) -> list[OSError | None]:
        """Write several results; return the error of each, if any."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            return [problem for _ in batch]
        return write_many(batch)


def encode_result(key: str, response: ExecutorResponse) -> bytes:
    """Return the content of the file that stores a result."""
    text = _to_text(encode(response))
    return f'{{"v": {FORMAT_VERSION}, "key": "{key}", "digest": "{_digest(text)}", "response": {text}}}'.encode()


def read_result(path: Path, key: str) -> ExecutorResponse:
    """Read a stored result. Raises OSError if it is missing and ValueError if it is damaged."""
    document = json.loads(read_regular(path))
    if not isinstance(document, dict) or (document.get("v"), document.get("key")) != (FORMAT_VERSION, key):
        raise DecodeError(f"{path.name} is not the result of {key}")
    if document.get("digest") != _digest(_to_text(document.get("response"))):
        raise DecodeError(f"{path.name} does not match its digest")
    return decode(ExecutorResponse, document["response"], extra="ignore")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
