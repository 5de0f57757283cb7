"""What can go wrong with a search provider, as a table: ask it once more? what to tell?

After every fault the next provider is asked; when all have failed, the words of all are told.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.html.hidden_unicode import strip_invisible
from tooling.web.http import messages
from tooling.web.http.messages import WebFault, WebResponse

SearchFaultKind: TypeAlias = (
    messages.FaultKind
    | Literal["bad_request", "auth", "quota", "wrong_address", "no_json", "rate_limit", "engines", "server"]
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
    # Tavily: the plan's limit, and the limit of paying as you go.
    432: "quota",
    433: "quota",
}
_MESSAGE_FIELDS = ("detail", "message", "msg", "error", "readableMessage")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFaultRow:
    """How one kind of fault is treated: whether the provider is asked once more, and what is told."""

    is_retryable: bool = False
    sentence: str


FAULTS: Mapping[SearchFaultKind, SearchFaultRow] = {
    "refused": SearchFaultRow(sentence="its address is not allowed"),
    "denied": SearchFaultRow(sentence="its address is not allowed"),
    "redirects": SearchFaultRow(sentence="it sends its callers elsewhere"),
    "unknown_host": SearchFaultRow(sentence="its name has no address"),
    "unreachable": SearchFaultRow(is_retryable=True, sentence="it cannot be reached"),
    "tls": SearchFaultRow(sentence="its connection cannot be trusted"),
    "timeout": SearchFaultRow(sentence="it did not answer in time"),
    "broken": SearchFaultRow(is_retryable=True, sentence="it broke off in the middle"),
    "encoding": SearchFaultRow(sentence="its answer cannot be unpacked"),
    "malformed": SearchFaultRow(is_retryable=True, sentence="its answer cannot be understood"),
    "bad_request": SearchFaultRow(sentence="it did not accept the query"),
    "auth": SearchFaultRow(sentence="it refused the key"),
    "quota": SearchFaultRow(sentence="the account has no credit left"),
    "wrong_address": SearchFaultRow(sentence="there is no search at its address"),
    "no_json": SearchFaultRow(sentence="it does not give JSON; its settings.yml must name json under search.formats"),
    "rate_limit": SearchFaultRow(is_retryable=True, sentence="its rate limit is reached"),
    "engines": SearchFaultRow(sentence="none of its engines answered"),
    "server": SearchFaultRow(is_retryable=True, sentence="it failed"),
}


class SearchFault(Exception):
    """A provider gave no results; `kind` finds its row, `detail` is the provider's own words."""

    def __init__(self, kind: SearchFaultKind, detail: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{FAULTS[kind].sentence} ({detail})" if detail else FAULTS[kind].sentence)
        self.kind = kind
        self.retry_after_s = retry_after_s

    @property
    def retry_delay_s(self) -> float | None:
        """Return how long to wait before the one retry; None when there is none, or when it would take too long."""
        wait_s = RETRY_WAIT_S if self.retry_after_s is None else self.retry_after_s
        return wait_s if FAULTS[self.kind].is_retryable and wait_s <= _MAX_WAIT_S else None


def from_web_fault(fault: WebFault) -> SearchFault:
    """Return a request's failure as a provider's."""
    return SearchFault(fault.kind, str(fault)[:_DETAIL_CHARS])


def json_or_raise(response: WebResponse) -> object:
    """Return the JSON of a good answer, or raise what its status means."""
    if not response.is_ok:
        raise response_fault(response)
    if response.is_cut:
        raise SearchFault("malformed", f"longer than {len(response.body)} bytes")
    try:
        return response.json()
    except WebFault as fault:
        raise from_web_fault(fault) from fault


def response_fault(response: WebResponse, kind: SearchFaultKind | None = None) -> SearchFault:
    """Return the fault that a status means, unless the caller knows better, with the provider's words."""
    usual: SearchFaultKind = "server" if response.status >= 500 or response.status == 408 else "bad_request"
    words = provider_message(response)
    detail = f"HTTP {response.status}: {words}" if words else f"HTTP {response.status}"
    retry_after_s = _parse_seconds(response.headers.get("retry-after", ""))
    return SearchFault(kind or _STATUSES.get(response.status, usual), detail, retry_after_s=retry_after_s)


def provider_message(response: WebResponse) -> str:
    """Return what the provider says went wrong, in whichever field it keeps that, on one line."""
    try:
        words = _find_message(response.json(), depth=3)
    except WebFault:
        words = ""
    visible, _ = strip_invisible(words)
    return " ".join(visible.split())[:_DETAIL_CHARS]


def _find_message(data: object, *, depth: int) -> str:
    if isinstance(data, str):
        return data
    if not isinstance(data, Mapping) or not depth:
        return ""
    return next((words for name in _MESSAGE_FIELDS if (words := _find_message(data.get(name), depth=depth - 1))), "")


def _parse_seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
