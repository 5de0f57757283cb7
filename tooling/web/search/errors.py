"""The faults of search providers as a table: whether to retry, and the message.

After a fault the next provider is queried; when all have failed, the error lists the message of each.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.http import messages
from tooling.web.http.messages import WebFault, WebResponse

SearchFaultKind: TypeAlias = (
    messages.FaultKind
    | Literal["bad_request", "auth", "quota", "wrong_address", "no_json", "rate_limit", "engines", "server", "plugin"]
)
_DETAIL_CHARS = 200
RETRY_WAIT_S = 1.0
_MAX_WAIT_S = 5.0
_STATUSES: Mapping[int, SearchFaultKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "wrong_address",
    405: "wrong_address",
    429: "rate_limit",
    # Tavily: the plan's limit and the pay-as-you-go limit.
    432: "quota",
    433: "quota",
}
_MESSAGE_FIELDS = ("detail", "message", "msg", "error", "readableMessage")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFaultRow:
    """Policy for one kind of fault; `sentence` describes the provider as "it"."""

    is_retryable: bool = False
    sentence: str


FAULTS: Mapping[SearchFaultKind, SearchFaultRow] = {
    "refused": SearchFaultRow(sentence="its address is not allowed"),
    "denied": SearchFaultRow(sentence="its address is not allowed"),
    "redirects": SearchFaultRow(sentence="it redirects elsewhere"),
    "unknown_host": SearchFaultRow(sentence="its host name does not resolve"),
    "unreachable": SearchFaultRow(is_retryable=True, sentence="it cannot be reached"),
    "tls": SearchFaultRow(sentence="its connection cannot be trusted"),
    "timeout": SearchFaultRow(sentence="it timed out"),
    "broken": SearchFaultRow(is_retryable=True, sentence="it closed the connection early"),
    "encoding": SearchFaultRow(sentence="its response cannot be decompressed"),
    "malformed": SearchFaultRow(is_retryable=True, sentence="its response cannot be parsed"),
    "bad_request": SearchFaultRow(sentence="it rejected the query"),
    "auth": SearchFaultRow(sentence="it rejected the key"),
    "quota": SearchFaultRow(sentence="the account has no credit left"),
    "wrong_address": SearchFaultRow(sentence="there is no search endpoint at its address"),
    "no_json": SearchFaultRow(sentence="JSON is disabled; add json to search.formats in its settings.yml"),
    "plugin": SearchFaultRow(sentence="its plugin failed"),
    "rate_limit": SearchFaultRow(is_retryable=True, sentence="its rate limit is reached"),
    "engines": SearchFaultRow(sentence="none of its engines responded"),
    "server": SearchFaultRow(is_retryable=True, sentence="it had an internal error"),
}


class SearchFault(Exception):
    """A provider failed; `kind` selects the row of FAULTS, `detail` is the provider's own message."""

    def __init__(self, kind: SearchFaultKind, detail: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{FAULTS[kind].sentence} ({detail})" if detail else FAULTS[kind].sentence)
        self.kind = kind
        self.retry_after_s = retry_after_s

    @property
    def retry_delay_s(self) -> float | None:
        """Return the delay before the one retry; None if the fault is permanent or the wait too long."""
        wait_s = RETRY_WAIT_S if self.retry_after_s is None else self.retry_after_s
        return wait_s if FAULTS[self.kind].is_retryable and wait_s <= _MAX_WAIT_S else None


def from_web_fault(fault: WebFault) -> SearchFault:
    """Convert a failed request into a provider fault."""
    return SearchFault(fault.kind, str(fault)[:_DETAIL_CHARS])


def json_or_raise(response: WebResponse) -> object:
    """Return the JSON of a successful response; raise SearchFault otherwise."""
    if not response.is_ok:
        raise response_fault(response)
    if response.is_truncated:
        raise SearchFault("malformed", too_long(len(response.body)))
    try:
        return response.json()
    except WebFault as fault:
        raise from_web_fault(fault) from fault


def too_long(size: int) -> str:
    """Return the detail for a response beyond the size limit."""
    return f"longer than {size} bytes"


def response_fault(response: WebResponse, kind: SearchFaultKind | None = None) -> SearchFault:
    """Return the fault for an error status with the provider's message; `kind` overrides the table."""
    default: SearchFaultKind = "server" if response.status >= 500 or response.status == 408 else "bad_request"
    message = provider_message(response)
    detail = f"HTTP {response.status}: {message}" if message else f"HTTP {response.status}"
    retry_after_s = _parse_seconds(response.headers.get("retry-after", ""))
    return SearchFault(kind or _STATUSES.get(response.status, default), detail, retry_after_s=retry_after_s)


def provider_message(response: WebResponse) -> str:
    """Return the provider's own error message on one line, from whichever field holds it."""
    try:
        message = _find_message(response.json(), depth=3)
    except WebFault:
        message = ""
    visible, _ = strip_invisible(message)
    return " ".join(visible.split())[:_DETAIL_CHARS]


def _find_message(data: object, *, depth: int) -> str:
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping) or not depth:
        return ""
    return next((text for name in _MESSAGE_FIELDS if (text := _find_message(data.get(name), depth=depth - 1))), "")


def _parse_seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
