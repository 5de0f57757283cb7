"""`steps/`: complete results of finished steps by cache key, each verified when it is read."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from agent.protocol.masking import mask_strings
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import read_regular

FORMAT_VERSION = 1
_KEY = lazy_pattern(r"[0-9a-f]{16,128}")


class StepResultStore:
    """The step cache of one session; a file that is damaged or belongs to another key is a miss."""

    def __init__(self, folder: Path, redact: Callable[[str], str] = lambda text: text) -> None:
        self._folder = folder
        self._redact = redact

    def get(self, key: str) -> ExecutorResponse | None:
        """Return the stored result of a key, or None."""
        try:
            return read_result(self.path_for(key), key)
        except (OSError, ValueError, RecursionError):
            return None

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Store a result durably. Raises OSError."""
        await asyncio.to_thread(self._write, key, mask_strings(response, self._redact))

    def path_for(self, key: str) -> Path:
        """Return the file of a key. Raises ValueError for a malformed key."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not a cache key")
        return self._folder / f"{key}.json"

    def _write(self, key: str, response: ExecutorResponse) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self.path_for(key), encode_result(key, response))


def encode_result(key: str, response: ExecutorResponse) -> bytes:
    """Return the content of the file that stores a result."""
    data = encode(response)
    document = {"v": FORMAT_VERSION, "key": key, "digest": _digest(data), "response": data}
    return json.dumps(document, indent=1).encode()


def read_result(path: Path, key: str) -> ExecutorResponse:
    """Read a stored result. Raises OSError if it is missing and ValueError if it is damaged."""
    document = json.loads(read_regular(path))
    if not isinstance(document, dict) or (document.get("v"), document.get("key")) != (FORMAT_VERSION, key):
        raise DecodeError(f"{path.name} is not the result of {key}")
    if document.get("digest") != _digest(document.get("response")):
        raise DecodeError(f"{path.name} does not match its digest")
    return decode(ExecutorResponse, document["response"], extra="ignore")


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
