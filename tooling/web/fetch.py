"""How a page is got: from its server, or where that fails or is not wanted, from a reader that the user trusts."""

import re
from collections import OrderedDict
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import unquote

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.secrets.redact import Redactor
from tooling.web.addresses.url_check import AddressRefused, Resolver, Target, parse_url, resolve_public
from tooling.web.documents.read_document import ParsedDocument, RawDocument, read_plain_ascii, sanitize
from tooling.web.documents.worker_pool import WorkerPool
from tooling.web.http.messages import FaultKind, RedirectGate, WebFault, WebRequest, WebResponse
from tooling.web.http.web_client import WebClient
from tooling.web.page import Page
from tooling.web.passages import MAX_CHARS, Passage
from tooling.web.settings import WebSettings

JINA_READER_URL = "https://r.jina.ai/"
READER_TIMEOUT_S = 60.0
_SECRET_NAMES = r"""(?ix)
    token|secret|passw|^pass$|pwd|api[-_]?key|apikey|access[-_]?key|auth(?!or)|bearer|signature|^sig$|session|sessid
    |credential|^code$|^key$|^k$|ticket|jwt|^sid$|invite|reset|otp|x-amz-|x-goog-|^se$|^sp$|^sv$|^st$|^hmac
"""
# What stands behind a word like these in a path opens a door, if there is a digit in it.
_SECRET_PATH = r"""(?ix)
    /[^/]*(?:tokens?|reset|password|invite|invitation|share|shared|verify|confirm|activate|unsubscribe|magic|webhooks?)
    /(?=[^/]*\d)[^/.]{5,}(?:/|$)
"""
_PAIR = r"[?&;/#]([^=&;/?#]{1,100})=[^&;?#]"
# Names that are given at random: of documents that only those find who were told. Forty are a commit, which is not.
_RANDOM_IDS = r"(?i)\b(?:[0-9a-f]{32,39}|[0-9a-f]{41,})\b"
# As long as an address that only its owner should know: small and capital letters and digits without any order.
_RANDOM_CHARS = 20


def reader_url(settings: WebSettings) -> str:
    """Return the address of the reader that is set up, or nothing: a service is one the user chose."""
    if settings.reader == "off":
        return ""
    return settings.reader_url or (JINA_READER_URL if settings.keys.get("jina") else "")


def why_not_shareable(target: Target) -> str | None:
    """Return why an address may not be told to somebody else, or None: private ones and those with secrets."""
    try:
        parse_url(target.url)
    except AddressRefused as error:
        return error.reason
    # An address inside an address is encoded, and one inside that twice.
    once = unquote(target.path)
    return next(filter(None, map(_why_secret, dict.fromkeys((target.path, once, unquote(once))))), None)


def _why_secret(path: str) -> str | None:
    if any(re.search(_SECRET_NAMES, name) for name in re.findall(_PAIR, path)):
        return "its query names a key, a token or the like"
    if Redactor().redact(path) != path:
        return "it holds what looks like a key"
    is_secret = re.search(_SECRET_PATH, path.partition("?")[0]) or re.search(_RANDOM_IDS, path)
    if is_secret or _looks_random(path):
        return "it may be an address that only those who know it can find"
    return None


def reader_request(target: Target, settings: WebSettings) -> WebRequest:
    """Return the request that asks the reader for a page."""
    base = reader_url(settings)
    headers = {"Accept": "application/json", "X-Return-Format": "markdown"}
    if (key := settings.keys.get("jina")) and base == JINA_READER_URL:
        headers["Authorization"] = f"Bearer {key}"
    return WebRequest(url=f"{base}{target.url}", headers=headers, is_trusted=True, timeout_s=READER_TIMEOUT_S)


def parse_reader_response(response: WebResponse) -> ParsedDocument:
    """Return what a reader answered, in its JSON or as plain text, or raise WebFault."""
    if not response.is_ok:
        raise WebFault("malformed", f"the reader answered with status {response.status}")
    if "json" not in response.headers.get("content-type", ""):
        return ParsedDocument(text=response.text, method="reader", kind="markdown")
    found = response.json()
    data = found.get("data", found) if isinstance(found, dict) else None
    content = data.get("content") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(content, str) or not content.strip():
        raise WebFault("malformed", "the reader answered without a text")
    date = next((str(data[name]) for name in ("publishedTime", "published_time", "date") if data.get(name)), "")
    return ParsedDocument(text=content, title=str(data.get("title") or ""), date=date, method="reader", kind="markdown")


def _looks_random(text: str) -> bool:
    return any(
        any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
        for run in re.findall(rf"[A-Za-z0-9]{{{_RANDOM_CHARS},}}", text)
    )


FetchMode: TypeAlias = Literal["auto", "text", "raw", "reader"]

ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.5"
MAX_RECENT_PAGES = 8
MAX_RECENT_CHARS = 8_000_000
# Failures of the way, not of the wish: another way may do better.
_READER_FALLBACK_FAULTS: frozenset[FaultKind] = frozenset(("unreachable", "timeout", "tls", "broken", "encoding"))
_READER_FALLBACK_STATUSES = frozenset((403, 406, 429, 451, 500, 502, 503, 504))
_THIN_CHARS = 200


class PageStatusError(Exception):
    """A server answered, and not with the page; what it said may still be worth reading."""

    def __init__(self, status: int, page: Page, retry_after: str = "") -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.page = page
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which page, how it is to be read, and whether one that was kept will do."""

    url: str
    mode: FetchMode = "auto"
    use_cache: bool = True
    is_continued: bool = False


class Fetcher:
    """Gets pages for the tools of a run, and remembers the last ones for those who turn pages."""

    def __init__(
        self, client: WebClient, settings: WebSettings, room: WorkerPool, *, resolver: Resolver | None = None
    ) -> None:
        self._client = client
        self._settings = settings
        self._workers = room
        self._resolver = resolver
        self._recent: OrderedDict[tuple[str, FetchMode], Page] = OrderedDict()

    async def fetch(self, request: PageRequest, gate: RedirectGate | None = None) -> Page:
        """Return a page, or raise WebFault or PageStatusError."""
        target = self._parse_target(request.url)
        key = (target.url, request.mode)
        if request.is_continued and request.use_cache and key in self._recent:
            return self._recent[key]
        page = await self._fetch_page(target, request, gate)
        self._add_recent(key, page)
        return page

    async def passages(self, page: Page, query: str) -> list[Passage]:
        """Return the passages of a page that fit a query."""
        return await self._workers.passages(query, page.text, min(MAX_CHARS, self._settings.max_chars))

    def _parse_target(self, url: str) -> Target:
        try:
            return parse_url(url, allow_loopback=self._settings.allow_loopback)
        except AddressRefused as error:
            raise WebFault("refused", error.reason) from error

    async def _fetch_page(self, target: Target, request: PageRequest, gate: RedirectGate | None) -> Page:
        has_reader = bool(reader_url(self._settings)) and request.mode in ("auto", "reader")
        if request.mode == "reader":
            return await self._fetch_via_reader(target, request)
        if has_reader and self._settings.reader == "always" and await self._why_not_shareable(target) is None:
            try:
                return await self._fetch_via_reader(target, request)
            except WebFault:
                # The page itself may still be there.
                return await self._fetch_direct(target, request, gate)
        if not has_reader:
            return await self._fetch_direct(target, request, gate)
        return await self._fetch_direct_or_reader(target, request, gate)

    async def _fetch_direct_or_reader(self, target: Target, request: PageRequest, gate: RedirectGate | None) -> Page:
        try:
            page = await self._fetch_direct(target, request, gate)
        except WebFault as fault:
            if fault.kind not in _READER_FALLBACK_FAULTS:
                raise
            return await self._reader_or_raise(target, request, fault)
        except PageStatusError as failure:
            if failure.status not in _READER_FALLBACK_STATUSES:
                raise
            return await self._reader_or_raise(target, request, failure)
        if not _is_thin(page):
            return page
        try:
            return await self._fetch_via_reader(target, request)
        except WebFault:
            return page

    async def _reader_or_raise(self, target: Target, request: PageRequest, problem: Exception) -> Page:
        """Return what the reader has, or raise the problem that made us ask it."""
        try:
            return await self._fetch_via_reader(target, request)
        except WebFault:
            raise problem from None

    async def _fetch_direct(self, target: Target, request: PageRequest, gate: RedirectGate | None) -> Page:
        self._workers.warm_up()
        headers = {"Accept": ACCEPT}
        response = await self._client.send(
            WebRequest(url=target.url, headers=headers, use_cache=request.use_cache, gate=gate)
        )
        if response.is_bomb:
            raise WebFault(
                "encoding", f"{target.host} sent a page that unpacks to more than {len(response.body)} bytes"
            )
        answer = _raw_document(response, request.mode)
        reading = read_plain_ascii(answer) or await self._workers.read(answer)
        if not reading.language and (language := response.headers.get("content-language", "")):
            reading = replace(reading, language=language[:20])
        page = Page(
            requested_url=target.url,
            url=response.url,
            document=reading,
            is_cut=response.is_cut,
            is_from_cache=response.is_from_cache,
        )
        if not response.is_ok:
            raise PageStatusError(response.status, page, _format_retry_after(response.headers.get("retry-after", "")))
        return page

    async def _fetch_via_reader(self, target: Target, request: PageRequest) -> Page:
        if not reader_url(self._settings):
            raise WebFault("refused", "no reader is set up (settings web_reader_url, keys.jina)")
        if why_not := await self._why_not_shareable(target):
            raise WebFault("refused", f"the address is not told to a reader: {why_not}")
        response = await self._client.send(reader_request(target, self._settings))
        reading = sanitize(parse_reader_response(response))
        return Page(requested_url=target.url, url=target.url, document=reading, is_cut=response.is_cut)

    async def _why_not_shareable(self, target: Target) -> str | None:
        if why_not := why_not_shareable(target):
            return why_not
        try:
            # A name that leads into a private network here is nothing for others, and neither is one unknown here.
            await resolve_public(target.host, target.port, resolver=self._resolver)
        except AddressRefused as error:
            return error.reason
        return None

    def _add_recent(self, key: tuple[str, FetchMode], page: Page) -> None:
        self._recent[key] = page
        self._recent.move_to_end(key)
        while len(self._recent) > MAX_RECENT_PAGES or self._recent_chars() > MAX_RECENT_CHARS:
            self._recent.popitem(last=False)

    def _recent_chars(self) -> int:
        return sum(len(page.text) for page in self._recent.values())


def _raw_document(response: WebResponse, way: FetchMode) -> RawDocument:
    return RawDocument(
        body=response.body,
        content_type=response.headers.get("content-type", ""),
        url=response.url,
        is_cut=response.is_cut,
        mode="auto" if way == "reader" else way,
    )


def _format_retry_after(text: str) -> str:
    """Return how long a server asks to wait: seconds or a date, nothing else."""
    if text.strip().isdecimal():
        return f"{text.strip()[:10]} s"
    return text[:40] if re.fullmatch(r"[A-Z][a-z]{2}, [0-9A-Za-z: ]{20,26}", text) else ""


def _is_thin(page: Page) -> bool:
    """Say whether a page seems to be made by its scripts, which nobody here runs."""
    reading: ParsedDocument = page.document
    return reading.kind == "html" and (reading.method == "raw" or len(reading.text) < _THIN_CHARS)
