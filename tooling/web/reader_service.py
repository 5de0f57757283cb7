"""A service that reads pages for us: which addresses may be told to it, how it is asked, what it answers."""

import re
from urllib.parse import unquote

from tooling.safety.secrets.redact import Redactor
from tooling.web.addresses.url_check import AddressRefused, Target, parse_url
from tooling.web.documents.read_document import Reading
from tooling.web.http.messages import WebFault, WebRequest, WebResponse
from tooling.web.settings import WebSettings

JINA = "https://r.jina.ai/"
TIMEOUT_S = 60.0
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
_GIVEN_NAMES = r"(?i)\b(?:[0-9a-f]{32,39}|[0-9a-f]{41,})\b"
# As long as an address that only its owner should know: small and capital letters and digits without any order.
_RANDOM_CHARS = 20


def reader_url(settings: WebSettings) -> str:
    """Return the address of the reader that is set up, or nothing: a service is one the user chose."""
    if settings.reader == "off":
        return ""
    return settings.reader_url or (JINA if settings.keys.get("jina") else "")


def why_not_told(target: Target) -> str | None:
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
    is_secret = re.search(_SECRET_PATH, path.partition("?")[0]) or re.search(_GIVEN_NAMES, path)
    if is_secret or _looks_random(path):
        return "it may be an address that only those who know it can find"
    return None


def request_for(target: Target, settings: WebSettings) -> WebRequest:
    """Return the request that asks the reader for a page."""
    base = reader_url(settings)
    headers = {"Accept": "application/json", "X-Return-Format": "markdown"}
    if (key := settings.keys.get("jina")) and base == JINA:
        headers["Authorization"] = f"Bearer {key}"
    return WebRequest(url=f"{base}{target.url}", headers=headers, is_trusted=True, timeout_s=TIMEOUT_S)


def reading_of(response: WebResponse) -> Reading:
    """Return what a reader answered, in its JSON or as plain text, or raise WebFault."""
    if not response.is_ok:
        raise WebFault("malformed", f"the reader answered with status {response.status}")
    if "json" not in response.headers.get("content-type", ""):
        return Reading(text=response.text, method="reader", kind="markdown")
    found = response.json()
    data = found.get("data", found) if isinstance(found, dict) else None
    content = data.get("content") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(content, str) or not content.strip():
        raise WebFault("malformed", "the reader answered without a text")
    date = next((str(data[name]) for name in ("publishedTime", "published_time", "date") if data.get(name)), "")
    return Reading(text=content, title=str(data.get("title") or ""), date=date, method="reader", kind="markdown")


def _looks_random(text: str) -> bool:
    return any(
        any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
        for run in re.findall(rf"[A-Za-z0-9]{{{_RANDOM_CHARS},}}", text)
    )
