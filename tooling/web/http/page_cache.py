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
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.web.http.messages import WebResponse

# A page that only says when it was last changed is taken to stay for a tenth of its age, and never long.
HEURISTIC_FRACTION = 0.1
MAX_HEURISTIC_S = 3600.0
MAX_FRESH_S = 30 * 86_400.0
_MAX_VALIDATOR_CHARS = 1000
_STORED_HEADERS = (
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
class CacheMetadata:
    """What is known of an answer that was kept; `asked_with` are the headers of its request that it depends on."""

    url: str
    headers: Mapping[str, str]
    asked_with: Mapping[str, str] = field(default_factory=dict)
    fresh_until: float = 0.0

    def matches(self, url: str, asked_with: Mapping[str, str]) -> bool:
        """Say whether this is the answer to that request."""
        wanted = _lower(asked_with)
        return self.url == url and all(wanted.get(name, "") == value for name, value in self.asked_with.items())

    @property
    def conditional_headers(self) -> dict[str, str]:
        """Return the headers that ask a server whether this still holds."""
        tag, changed = (_safe_validator(self.headers.get(name, "")) for name in ("etag", "last-modified"))
        return {**({"If-None-Match": tag} if tag else {}), **({"If-Modified-Since": changed} if changed else {})}


def metadata_for(response: WebResponse, asked_with: Mapping[str, str], now: float) -> CacheMetadata | None:
    """Return the label under which an answer may be kept, or None when it may not."""
    headers = response.headers
    rules = _parse_directives(headers.get("cache-control", ""))
    names = [name.strip().lower() for name in headers.get("vary", "").split(",") if name.strip()]
    if response.status != 200 or response.is_cut or "no-store" in rules or "*" in names:
        return None
    wanted = _lower(asked_with)
    label = CacheMetadata(
        url=response.url,
        headers=_stored_headers(headers),
        asked_with={name: wanted.get(name, "") for name in names},
        fresh_until=fresh_until(headers, now),
    )
    return label if label.fresh_until > now or label.conditional_headers else None


def refresh_metadata(label: CacheMetadata, headers: Mapping[str, str], now: float) -> CacheMetadata:
    """Return the label of an answer that a server said still holds, with what it said."""
    # The age of the old answer is not that of the word that renews it.
    old = {name: value for name, value in label.headers.items() if name != "age"}
    merged = {**old, **_stored_headers(headers)}
    return replace(label, headers=merged, fresh_until=fresh_until(merged, now))


def fresh_until(headers: Mapping[str, str], now: float) -> float:
    """Return until when an answer holds without asking again."""
    rules = _parse_directives(headers.get("cache-control", ""))
    if "no-cache" in rules or ("cache-control" not in headers and headers.get("pragma", "").lower() == "no-cache"):
        return 0.0
    age = _parse_seconds(headers.get("age", ""))
    if "max-age" in rules:
        return now + min(_parse_seconds(rules["max-age"]), MAX_FRESH_S) - age
    made = _parse_date(headers.get("date", "")) or now
    if "expires" in headers:
        return now + min((_parse_date(headers["expires"]) or 0.0) - made, MAX_FRESH_S) - age
    changed = _parse_date(headers.get("last-modified", ""))
    if changed is None:
        return 0.0
    return now + min(max(made - changed, 0.0) * HEURISTIC_FRACTION, MAX_HEURISTIC_S) - age


def _safe_validator(text: str) -> str:
    """Return what can be sent back to its server: careless servers, and files that were meddled with, hold anything."""
    return text if len(text) <= _MAX_VALIDATOR_CHARS and text.isascii() and text.isprintable() else ""


def _parse_directives(text: str) -> dict[str, str]:
    found = re.findall(r"([\w-]+)(?:\s*=\s*(?:\"([^\"]*)\"|([^\s,;]*)))?", text.lower())
    return {name: quoted or plain for name, quoted, plain in found}


def _parse_seconds(text: str) -> float:
    return float(text[:12]) if text.strip().isdecimal() else 0.0


def _parse_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _stored_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _STORED_HEADERS if headers.get(name)}


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


# Making room goes further than needed, so that it is not done for every page.
_EVICT_TO = 0.8
_SUFFIX = ".page"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """An answer that was kept."""

    metadata: CacheMetadata
    body: bytes

    @property
    def response(self) -> WebResponse:
        """Return the answer as if it had just come."""
        label = self.metadata
        return WebResponse(url=label.url, status=200, headers=label.headers, body=self.body, is_from_cache=True)


class DiskCache:
    """Looks up, keeps and renews answers; a file each, replaced whole."""

    def __init__(self, folder: Path, *, most_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._max_bytes = most_bytes
        self._clock = clock

    async def get(self, url: str, asked_with: Mapping[str, str]) -> CacheEntry | None:
        """Return what was kept for a request, fresh or not, or None."""
        entry = await asyncio.to_thread(_read_entry, self._path(url))
        return entry if entry is not None and entry.metadata.matches(url, asked_with) else None

    def is_fresh(self, entry: CacheEntry) -> bool:
        """Say whether an entry may be used without asking."""
        return entry.metadata.fresh_until > self._clock()

    async def put(self, response: WebResponse, asked_with: Mapping[str, str]) -> None:
        """Keep an answer if it may be kept; of one that may not, nothing older stays either."""
        label = metadata_for(response, asked_with, self._clock())
        if label is None:
            await asyncio.to_thread(self._delete, response.url)
        else:
            await asyncio.to_thread(self._write, label, response.body)

    async def refresh(self, entry: CacheEntry, headers: Mapping[str, str]) -> None:
        """Let an entry hold for longer, as the server said."""
        await asyncio.to_thread(self._write, refresh_metadata(entry.metadata, headers, self._clock()), entry.body)

    def _path(self, url: str) -> Path:
        return self._folder / (hashlib.sha256(url.encode()).hexdigest()[:40] + _SUFFIX)

    def _delete(self, url: str) -> None:
        with contextlib.suppress(OSError):
            self._path(url).unlink(missing_ok=True)

    def _write(self, label: CacheMetadata, body: bytes) -> None:
        path = self._path(label.url)
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident():x}")
        head = json.dumps({**_encode_metadata(label), "size": len(body)}).encode()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(head + b"\n")
                file.write(body)
            temporary.replace(path)
            self._evict()
        except OSError:
            # A full disk makes pages slower, not impossible.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _evict(self) -> None:
        with os.scandir(self._folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        total = sum(about.st_size for about, _ in found)
        if total <= self._max_bytes:
            return
        for about, path in sorted(found, key=lambda one: one[0].st_mtime):
            Path(path).unlink(missing_ok=True)
            total -= about.st_size
            if total <= self._max_bytes * _EVICT_TO:
                return


def _read_entry(path: Path) -> CacheEntry | None:
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
        label = decode(CacheMetadata, found)
        # What is used stays longest.
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError):
        return None
    return CacheEntry(metadata=label, body=body)


def _encode_metadata(label: CacheMetadata) -> dict[str, object]:
    fields = encode(label)
    return fields if isinstance(fields, dict) else {}
