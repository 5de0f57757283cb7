"""Fetch a page from its server, or through the reader service that the user configured."""

import re
from collections import OrderedDict
from dataclasses import replace
from urllib.parse import unquote

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.web import FetchMode
from tooling.safety.secrets.redact import Redactor
from tooling.web.addresses.url_check import AddressRefused, Resolver, Target, parse_url, resolve_public
from tooling.web.documents.read_document import ParsedDocument, RawDocument, is_image, read_plain_ascii, sanitize
from tooling.web.documents.worker_pool import WorkerPool
from tooling.web.http.messages import FaultKind, RedirectGate, WebFault, WebRequest, WebResponse
from tooling.web.http.web_client import WebClient
from tooling.web.page import Page, WebImage
from tooling.web.passages import MAX_CHARS, Passage
from tooling.web.settings import WebSettings

JINA_READER_URL = "https://r.jina.ai/"
READER_TIMEOUT_S = 60.0
_SECRET_NAMES = r"""(?ix)
    token|secret|passw|^pass$|pwd|api[-_]?key|apikey|access[-_]?key|auth(?!or)|bearer|signature|^sig$|session|sessid
    |credential|^code$|^key$|^k$|ticket|jwt|^sid$|invite|reset|otp|x-amz-|x-goog-|^se$|^sp$|^sv$|^st$|^hmac
"""
# A path segment after a word like these grants access if it contains a digit.
_SECRET_PATH = r"""(?ix)
    /[^/]*(?:tokens?|reset|password|invite|invitation|share|shared|verify|confirm|activate|unsubscribe|magic|webhooks?)
    /(?=[^/]*\d)[^/.]{5,}(?:/|$)
"""
_PAIR = r"[?&;/#]([^=&;/?#]{1,100})=[^&;?#]"
# Random ids of unlisted documents. Exactly 40 hex digits are a Git commit, which is public.
_RANDOM_IDS = r"(?i)\b(?:[0-9a-f]{32,39}|[0-9a-f]{41,})\b"
# A run of mixed-case letters and digits this long is taken for a capability URL.
_RANDOM_CHARS = 20

NO_READER = "no reader service is configured (settings web_reader_url, keys.jina)"


def not_shared(reason: str) -> str:
    """Return the message for an address that must not be shared."""

    return f"the address is not sent to a reader service: {reason}"


def reader_url(settings: WebSettings) -> str:
    """Return the base URL of the configured reader service, or an empty string; there is no default service."""
    if settings.reader == "off":
        return ""
    return settings.reader_url or (JINA_READER_URL if settings.keys.get("jina") else "")


def why_not_shareable(target: Target) -> str | None:
    """Return why an address must not be sent to a third party (private, or may contain a secret), or None."""
    try:
        parse_url(target.url)
    except AddressRefused as error:
        return error.reason
    # A URL inside a query is percent-encoded, and one nested deeper is encoded twice.
    once = unquote(target.path)
    return next(filter(None, map(_why_secret, dict.fromkeys((target.path, once, unquote(once))))), None)


def _why_secret(path: str) -> str | None:
    if any(re.search(_SECRET_NAMES, name) for name in re.findall(_PAIR, path)):
        return "its query contains a key, token or similar"
    if Redactor().redact(path) != path:
        return "it contains something that looks like a key"
    is_secret = re.search(_SECRET_PATH, path.partition("?")[0]) or re.search(_RANDOM_IDS, path)
    if is_secret or _looks_random(path):
        return "it may be an unlisted address"
    return None


def reader_request(target: Target, settings: WebSettings) -> WebRequest:
    """Return the request for a page to the reader service."""
    base = reader_url(settings)
    headers = {"Accept": "application/json", "X-Return-Format": "markdown"}
    if (key := settings.keys.get("jina")) and base == JINA_READER_URL:
        headers["Authorization"] = f"Bearer {key}"
    return WebRequest(url=f"{base}{target.url}", headers=headers, is_trusted=True, timeout_s=READER_TIMEOUT_S)


def parse_reader_response(response: WebResponse) -> ParsedDocument:
    """Parse the reader's response, JSON or plain text; raise WebFault if it has no content."""
    if not response.is_ok:
        raise WebFault("malformed", f"the reader service returned status {response.status}")
    if "json" not in response.headers.get("content-type", ""):
        return ParsedDocument(text=response.text, method="reader", kind="markdown")
    payload = response.json()
    data = payload.get("data", payload) if isinstance(payload, dict) else None
    content = data.get("content") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(content, str) or not content.strip():
        raise WebFault("malformed", "the reader service returned no content")
    date = next((str(data[name]) for name in ("publishedTime", "published_time", "date") if data.get(name)), "")
    return ParsedDocument(text=content, title=str(data.get("title") or ""), date=date, method="reader", kind="markdown")


def _looks_random(text: str) -> bool:
    return any(
        any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
        for run in re.findall(rf"[A-Za-z0-9]{{{_RANDOM_CHARS},}}", text)
    )


ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.5"
MAX_RECENT_PAGES = 8
MAX_RECENT_CHARS = 8_000_000
# Failures of the connection rather than of the request: the reader service may get through.
_READER_FALLBACK_FAULTS: frozenset[FaultKind] = frozenset(("unreachable", "timeout", "tls", "broken", "encoding"))
_READER_FALLBACK_STATUSES = frozenset((403, 406, 429, 451, 500, 502, 503, 504))
_THIN_CHARS = 200


class PageStatusError(Exception):
    """The server returned an error status; its error page may still be worth reading."""

    def __init__(self, status: int, page: Page, retry_after: str = "") -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.page = page
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page to fetch and how to read it; `is_continued` marks a later part of a page fetched before."""

    url: str
    mode: FetchMode = "auto"
    use_cache: bool = True
    is_continued: bool = False


class Fetcher:
    """Fetches pages for the tools of a run and keeps the most recent ones for continued reading."""

    def __init__(
        self, client: WebClient, settings: WebSettings, workers: WorkerPool, *, resolver: Resolver | None = None
    ) -> None:
        self._client = client
        self._settings = settings
        self._workers = workers
        self._resolver = resolver
        self._recent: OrderedDict[tuple[str, FetchMode], Page] = OrderedDict()

    async def fetch(self, request: PageRequest, gate: RedirectGate | None = None) -> Page:
        """Return the page, or raise WebFault or PageStatusError; `gate` approves redirects to other hosts."""
        target = self._parse_target(request.url)
        key = (target.url, request.mode)
        if request.is_continued and request.use_cache and key in self._recent:
            return self._recent[key]
        page = await self._fetch_page(target, request, gate)
        self._add_recent(key, page)
        return page

    async def passages(self, page: Page, query: str) -> list[Passage]:
        """Return the passages of a page that match a query."""
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
        """Fetch through the reader service; if that fails too, raise the original problem."""
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
                "encoding", f"{target.host} sent a page that decompresses to more than {len(response.body)} bytes"
            )
        raw = _raw_document(response, request.mode)
        if response.is_ok and is_image(raw):
            return await self._read_image(raw, target, response)
        document = read_plain_ascii(raw) or await self._workers.read(raw)
        if not document.language and (language := response.headers.get("content-language", "")):
            document = replace(document, language=language[:20])
        page = Page(
            requested_url=target.url,
            url=response.url,
            document=document,
            is_truncated=response.is_truncated,
            is_from_cache=response.is_from_cache,
        )
        if not response.is_ok:
            raise PageStatusError(response.status, page, _format_retry_after(response.headers.get("retry-after", "")))
        return page

    async def _read_image(self, raw: RawDocument, target: Target, response: WebResponse) -> Page:
        page = Page(
            requested_url=target.url, url=response.url, document=ParsedDocument(), is_from_cache=response.is_from_cache
        )
        if raw.is_truncated:
            return replace(page, document=ParsedDocument(problem=image_too_large(len(raw.body))))
        match await self._workers.scale_image(raw.body):
            case str(problem):
                return replace(page, document=ParsedDocument(problem=problem))
            case data, header:
                return replace(page, image=WebImage(data=data, header=header))

    async def _fetch_via_reader(self, target: Target, request: PageRequest) -> Page:
        if not reader_url(self._settings):
            raise WebFault("refused", NO_READER)
        if reason := await self._why_not_shareable(target):
            raise WebFault("refused", not_shared(reason))
        response = await self._client.send(reader_request(target, self._settings))
        document = sanitize(parse_reader_response(response))
        return Page(requested_url=target.url, url=target.url, document=document, is_truncated=response.is_truncated)

    async def _why_not_shareable(self, target: Target) -> str | None:
        if reason := why_not_shareable(target):
            return reason
        try:
            # A name that resolves to a private network, or only elsewhere, must not be disclosed either.
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


def image_too_large(limit: int) -> str:
    """Return the problem of an image that exceeds the download limit."""
    return f"the image is larger than {limit} bytes (setting web_max_bytes)"


def _raw_document(response: WebResponse, mode: FetchMode) -> RawDocument:
    return RawDocument(
        body=response.body,
        content_type=response.headers.get("content-type", ""),
        url=response.url,
        is_truncated=response.is_truncated,
        mode="auto" if mode == "reader" else mode,
    )


def _format_retry_after(text: str) -> str:
    """Return a Retry-After header if it is seconds or a date; any other text of the server is dropped."""
    if text.strip().isdecimal():
        return f"{text.strip()[:10]} s"
    return text[:40] if re.fullmatch(r"[A-Z][a-z]{2}, [0-9A-Za-z: ]{20,26}", text) else ""


def _is_thin(page: Page) -> bool:
    """Return whether a page has so little text that its scripts probably render it."""
    document = page.document
    return document.kind == "html" and (document.method == "raw" or len(document.text) < _THIN_CHARS)
