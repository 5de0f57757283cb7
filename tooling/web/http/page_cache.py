"""Answers kept on disk, for this user alone, up to a size; whatever is wrong with the disk, requests go on without."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from email.utils import parsedate_to_datetime
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import ShapeError, decode, encode
from tooling.web.http.messages import WebResponse

# A page that only says when it was last changed is taken to stay for a tenth of its age, and never long.
GUESSED_SHARE = 0.1
MOST_GUESSED_S = 3600.0
MOST_FRESH_S = 30 * 86_400.0
_MOST_TAG_CHARS = 1000
_KEPT_HEADERS = (
    "age",
    "cache-control",
    "content-language",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "vary",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is known of an answer that was kept; `asked_with` are the headers of its request that it depends on."""

    url: str
    headers: Mapping[str, str]
    asked_with: Mapping[str, str] = field(default_factory=dict)
    fresh_until: float = 0.0

    def fits(self, url: str, asked_with: Mapping[str, str]) -> bool:
        """Say whether this is the answer to that request."""
        wanted = _lower(asked_with)
        return self.url == url and all(wanted.get(name, "") == value for name, value in self.asked_with.items())

    @property
    def conditions(self) -> dict[str, str]:
        """Return the headers that ask a server whether this still holds."""
        tag, changed = (_sendable(self.headers.get(name, "")) for name in ("etag", "last-modified"))
        return {**({"If-None-Match": tag} if tag else {}), **({"If-Modified-Since": changed} if changed else {})}


def label_of(response: WebResponse, asked_with: Mapping[str, str], now: float) -> Label | None:
    """Return the label under which an answer may be kept, or None when it may not."""
    headers = response.headers
    rules = _directives(headers.get("cache-control", ""))
    names = [name.strip().lower() for name in headers.get("vary", "").split(",") if name.strip()]
    if response.status != 200 or response.is_cut or "no-store" in rules or "*" in names:
        return None
    wanted = _lower(asked_with)
    label = Label(
        url=response.url,
        headers=_kept(headers),
        asked_with={name: wanted.get(name, "") for name in names},
        fresh_until=fresh_until(headers, now),
    )
    return label if label.fresh_until > now or label.conditions else None


def renewed(label: Label, headers: Mapping[str, str], now: float) -> Label:
    """Return the label of an answer that a server said still holds, with what it said."""
    # The age of the old answer is not that of the word that renews it.
    old = {name: value for name, value in label.headers.items() if name != "age"}
    merged = {**old, **_kept(headers)}
    return replace(label, headers=merged, fresh_until=fresh_until(merged, now))


def fresh_until(headers: Mapping[str, str], now: float) -> float:
    """Return until when an answer holds without asking again."""
    rules = _directives(headers.get("cache-control", ""))
    if "no-cache" in rules or ("cache-control" not in headers and headers.get("pragma", "").lower() == "no-cache"):
        return 0.0
    age = _seconds(headers.get("age", ""))
    if "max-age" in rules:
        return now + min(_seconds(rules["max-age"]), MOST_FRESH_S) - age
    made = _moment(headers.get("date", "")) or now
    if "expires" in headers:
        return now + min((_moment(headers["expires"]) or 0.0) - made, MOST_FRESH_S) - age
    changed = _moment(headers.get("last-modified", ""))
    if changed is None:
        return 0.0
    return now + min(max(made - changed, 0.0) * GUESSED_SHARE, MOST_GUESSED_S) - age


def _sendable(text: str) -> str:
    """Return what can be sent back to its server: careless servers, and files that were meddled with, hold anything."""
    return text if len(text) <= _MOST_TAG_CHARS and text.isascii() and text.isprintable() else ""


def _directives(text: str) -> dict[str, str]:
    found = re.findall(r"([\w-]+)(?:\s*=\s*(?:\"([^\"]*)\"|([^\s,;]*)))?", text.lower())
    return {name: quoted or plain for name, quoted, plain in found}


def _seconds(text: str) -> float:
    return float(text[:12]) if text.strip().isdecimal() else 0.0


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _KEPT_HEADERS if headers.get(name)}


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


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
