"""What a private cache may keep and for how long, by the headers of an answer; nothing here touches a disk."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from email.utils import parsedate_to_datetime

from tooling.contract.fast_dataclass import dataclass
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
