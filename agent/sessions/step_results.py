"""`steps/`: whole results of finished steps by their address, each verified before it is believed."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from agent.protocol.masking import mask_strings
from agent.vocabulary.step import ExecutorResponse
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.files.atomic_write import write_atomic

FORMAT_VERSION = 1
_KEY = re.compile(r"[0-9a-f]{16,128}")


class StepResultStore:
    """The shelf of one session; a file that is torn, foreign or of another step is no hit."""

    def __init__(self, folder: Path, redact: Callable[[str], str] = lambda text: text) -> None:
        self._folder = folder
        self._redact = redact

    def get(self, key: str) -> ExecutorResponse | None:
        """Return the result that was kept under a key, or None."""
        try:
            return read_result(self.path_for(key), key)
        except (OSError, ValueError, RecursionError):
            return None

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Store a result so that it survives a crash from now on. Raises OSError."""
        await asyncio.to_thread(self._write, key, mask_strings(response, self._redact))

    def path_for(self, key: str) -> Path:
        """Return where the result of a key is kept."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not the address of a result")
        return self._folder / f"{key}.json"

    def _write(self, key: str, response: ExecutorResponse) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self.path_for(key), encode_result(key, response))


def encode_result(key: str, response: ExecutorResponse) -> bytes:
    """Return the content of the file in which a result is kept."""
    data = encode(response)
    whole = {"v": FORMAT_VERSION, "key": key, "digest": _digest(data), "response": data}
    return json.dumps(whole, indent=1).encode()


def read_result(path: Path, key: str) -> ExecutorResponse:
    """Return a kept result; raises OSError when it is not there and ValueError when it is not what was kept."""
    whole = json.loads(path.read_bytes())
    if not isinstance(whole, dict) or (whole.get("v"), whole.get("key")) != (FORMAT_VERSION, key):
        raise DecodeError(f"{path.name} is not the result of {key}")
    if whole.get("digest") != _digest(whole.get("response")):
        raise DecodeError(f"{path.name} is not what was kept")
    return decode(ExecutorResponse, whole["response"], extra="ignore")


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
