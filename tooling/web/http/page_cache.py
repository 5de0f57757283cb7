"""Answers kept on disk, for this user alone, up to a size; whatever is wrong with the disk, requests go on without."""

import asyncio
import contextlib
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import ShapeError, decode, encode
from tooling.web.cache_rules import Label, label_of, renewed
from tooling.web.http.messages import WebResponse

# Making room goes further than needed, so that it is not done for every page.
_KEPT_SHARE = 0.8
_ENDING = ".page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An answer that was kept."""

    label: Label
    body: bytes

    @property
    def response(self) -> WebResponse:
        """Return the answer as if it had just come."""
        label = self.label
        return WebResponse(url=label.url, status=200, headers=label.headers, body=self.body, is_from_cache=True)


class DiskCache:
    """Looks up, keeps and renews answers; a file each, replaced whole."""

    def __init__(self, folder: Path, *, most_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._clock = clock

    async def find(self, url: str, asked_with: Mapping[str, str]) -> Entry | None:
        """Return what was kept for a request, fresh or not, or None."""
        entry = await asyncio.to_thread(_read, self._path(url))
        return entry if entry is not None and entry.label.fits(url, asked_with) else None

    def is_fresh(self, entry: Entry) -> bool:
        """Say whether an entry may be used without asking."""
        return entry.label.fresh_until > self._clock()

    async def keep(self, response: WebResponse, asked_with: Mapping[str, str]) -> None:
        """Keep an answer if it may be kept; of one that may not, nothing older stays either."""
        label = label_of(response, asked_with, self._clock())
        if label is None:
            await asyncio.to_thread(self._forget, response.url)
        else:
            await asyncio.to_thread(self._write, label, response.body)

    async def renew(self, entry: Entry, headers: Mapping[str, str]) -> None:
        """Let an entry hold for longer, as the server said."""
        await asyncio.to_thread(self._write, renewed(entry.label, headers, self._clock()), entry.body)

    def _path(self, url: str) -> Path:
        return self._folder / (hashlib.sha256(url.encode()).hexdigest()[:40] + _ENDING)

    def _forget(self, url: str) -> None:
        with contextlib.suppress(OSError):
            self._path(url).unlink(missing_ok=True)

    def _write(self, label: Label, body: bytes) -> None:
        path = self._path(label.url)
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident():x}")
        head = json.dumps({**_fields(label), "size": len(body)}).encode()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(head + b"\n")
                file.write(body)
            temporary.replace(path)
            self._make_room()
        except OSError:
            # A full disk makes pages slower, not impossible.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _make_room(self) -> None:
        with os.scandir(self._folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        total = sum(about.st_size for about, _ in found)
        if total <= self._most_bytes:
            return
        for about, path in sorted(found, key=lambda one: one[0].st_mtime):
            Path(path).unlink(missing_ok=True)
            total -= about.st_size
            if total <= self._most_bytes * _KEPT_SHARE:
                return


def _read(path: Path) -> Entry | None:
    try:
        # A pipe in place of the file would be waited for.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            head, body = file.readline(), file.read()
        found = json.loads(head)
        if found.pop("size") != len(body):
            return None
        label = decode(Label, found)
        # What is used stays longest.
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ShapeError):
        return None
    return Entry(label=label, body=body)


def _fields(label: Label) -> dict[str, object]:
    fields = encode(label)
    return fields if isinstance(fields, dict) else {}
