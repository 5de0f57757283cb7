"""HTTP cache on disk, private to the user and bounded in size; disk errors never fail a request."""

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

# Heuristic freshness (RFC 9111): with only Last-Modified, a page is fresh for a tenth of its age, with an upper bound.
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
    """Metadata of a cached response; `asked_with` are the request headers named by Vary."""

    url: str
    headers: Mapping[str, str]
    asked_with: Mapping[str, str] = field(default_factory=dict)
    fresh_until: float = 0.0

    def matches(self, url: str, request_headers: Mapping[str, str]) -> bool:
        """Return whether the response answers a request with this URL and these headers."""
        sent = _lower(request_headers)
        return self.url == url and all(sent.get(name, "") == value for name, value in self.asked_with.items())

    @property
    def conditional_headers(self) -> dict[str, str]:
        """Return the headers of a conditional request for this response."""
        etag, modified = (_safe_validator(self.headers.get(name, "")) for name in ("etag", "last-modified"))
        return {**({"If-None-Match": etag} if etag else {}), **({"If-Modified-Since": modified} if modified else {})}


def metadata_for(response: WebResponse, request_headers: Mapping[str, str], now: float) -> CacheMetadata | None:
    """Return the metadata to store with a response, or None if it must not or need not be cached."""
    headers = response.headers
    directives = _parse_directives(headers.get("cache-control", ""))
    vary = [name.strip().lower() for name in headers.get("vary", "").split(",") if name.strip()]
    if response.status != 200 or response.is_truncated or "no-store" in directives or "*" in vary:
        return None
    sent = _lower(request_headers)
    metadata = CacheMetadata(
        url=response.url,
        headers=_stored_headers(headers),
        asked_with={name: sent.get(name, "") for name in vary},
        fresh_until=fresh_until(headers, now),
    )
    return metadata if metadata.fresh_until > now or metadata.conditional_headers else None


def refresh_metadata(metadata: CacheMetadata, headers: Mapping[str, str], now: float) -> CacheMetadata:
    """Return the metadata of a revalidated response, updated with the headers of the 304."""
    # Age belongs to the stored response, not to the revalidation.
    old = {name: value for name, value in metadata.headers.items() if name != "age"}
    merged = {**old, **_stored_headers(headers)}
    return replace(metadata, headers=merged, fresh_until=fresh_until(merged, now))


def fresh_until(headers: Mapping[str, str], now: float) -> float:
    """Return the time until which a response may be used without revalidation."""
    directives = _parse_directives(headers.get("cache-control", ""))
    is_pragma_no_cache = "cache-control" not in headers and headers.get("pragma", "").lower() == "no-cache"
    if "no-cache" in directives or is_pragma_no_cache:
        return 0.0
    age = _parse_seconds(headers.get("age", ""))
    if "max-age" in directives:
        return now + min(_parse_seconds(directives["max-age"]), MAX_FRESH_S) - age
    date = _parse_date(headers.get("date", "")) or now
    if "expires" in headers:
        return now + min((_parse_date(headers["expires"]) or 0.0) - date, MAX_FRESH_S) - age
    modified = _parse_date(headers.get("last-modified", ""))
    if modified is None:
        return 0.0
    return now + min(max(date - modified, 0.0) * HEURISTIC_FRACTION, MAX_HEURISTIC_S) - age


def _safe_validator(text: str) -> str:
    """Return a validator if it can be sent back: servers and tampered cache files may contain anything."""
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


# Evict below the limit, so that not every new page evicts again.
_EVICT_TO = 0.8
_SUFFIX = ".page"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """A cached response."""

    metadata: CacheMetadata
    body: bytes

    @property
    def response(self) -> WebResponse:
        metadata = self.metadata
        return WebResponse(url=metadata.url, status=200, headers=metadata.headers, body=self.body, is_from_cache=True)


class DiskCache:
    """Stores responses, one file each, replaced atomically."""

    def __init__(self, folder: Path, *, max_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._clock = clock

    async def get(self, url: str, request_headers: Mapping[str, str]) -> CacheEntry | None:
        """Return the entry for a request, fresh or stale, or None."""
        entry = await asyncio.to_thread(_read_entry, self._path(url))
        return entry if entry is not None and entry.metadata.matches(url, request_headers) else None

    def is_fresh(self, entry: CacheEntry) -> bool:
        """Return whether an entry may be used without revalidation."""
        return entry.metadata.fresh_until > self._clock()

    async def put(self, response: WebResponse, request_headers: Mapping[str, str]) -> None:
        """Store a response; if it is not cacheable, remove the older entry instead."""
        metadata = metadata_for(response, request_headers, self._clock())
        if metadata is None:
            await asyncio.to_thread(self._delete, response.url)
        else:
            await asyncio.to_thread(self._write, metadata, response.body)

    async def refresh(self, entry: CacheEntry, headers: Mapping[str, str]) -> None:
        """Extend the freshness of an entry with the headers of a 304."""
        await asyncio.to_thread(self._write, refresh_metadata(entry.metadata, headers, self._clock()), entry.body)

    def _path(self, url: str) -> Path:
        return self._folder / (hashlib.sha256(url.encode()).hexdigest()[:40] + _SUFFIX)

    def _delete(self, url: str) -> None:
        with contextlib.suppress(OSError):
            self._path(url).unlink(missing_ok=True)

    def _write(self, metadata: CacheMetadata, body: bytes) -> None:
        path = self._path(metadata.url)
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident():x}")
        head = json.dumps({**_encode_metadata(metadata), "size": len(body)}).encode()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(head + b"\n")
                file.write(body)
            temporary.replace(path)
            self._evict()
        except OSError:
            # A full disk only costs speed.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _evict(self) -> None:
        with os.scandir(self._folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        total = sum(status.st_size for status, _ in found)
        if total <= self._max_bytes:
            return
        for status, path in sorted(found, key=lambda item: item[0].st_mtime):
            Path(path).unlink(missing_ok=True)
            total -= status.st_size
            if total <= self._max_bytes * _EVICT_TO:
                return


def _read_entry(path: Path) -> CacheEntry | None:
    try:
        # Non-blocking, because opening a FIFO in place of the file would hang.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            head, body = file.readline(), file.read()
        fields = json.loads(head)
        if fields.pop("size") != len(body):
            return None
        metadata = decode(CacheMetadata, fields)
        # Eviction is least recently used, by modification time.
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError):
        return None
    return CacheEntry(metadata=metadata, body=body)


def _encode_metadata(metadata: CacheMetadata) -> dict[str, object]:
    fields = encode(metadata)
    return fields if isinstance(fields, dict) else {}
