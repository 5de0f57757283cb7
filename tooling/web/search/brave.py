"""Brave: GET /res/v1/web/search with the key in a header of its own; billed by the request."""

from collections.abc import Mapping
from html import unescape
from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import json_or_raise, response_fault
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery, build_hit, objects_at

URL = "https://api.search.brave.com"
USD_PER_SEARCH = 0.005
_MAX_RESULTS = 20
_MAX_CHARS = 400
_MAX_WORDS = 50
_WRONG_KEY = b"SUBSCRIPTION_TOKEN_INVALID"


def build_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request; the query is cut to what Brave takes."""
    words = " ".join(query.text.split()[:_MAX_WORDS])[:_MAX_CHARS]
    parameters = {
        "q": words,
        "count": min(query.count, _MAX_RESULTS),
        "result_filter": "web",
        "text_decorations": "false",
    }
    return WebRequest(
        url=f"{access.url}/res/v1/web/search?{urlencode(parameters)}",
        headers={"X-Subscription-Token": access.key, "Accept": "application/json"},
        is_trusted=True,
    )


def parse_response(response: WebResponse) -> ProviderReply:
    """Return the results of an answer; one without a `web` part found nothing."""
    if response.status == 422 and _WRONG_KEY in response.body:
        raise response_fault(response, "auth")
    data = json_or_raise(response)
    is_empty = isinstance(data, Mapping) and data.get("type") == "search" and "web" not in data
    listed = [] if is_empty else objects_at(data, "web", "results")
    found = (
        build_hit(
            title=_unescape(item.get("title")),
            url=item.get("url"),
            snippet=_unescape(item.get("description")),
            date=item.get("page_age") or item.get("age"),
        )
        for item in listed
    )
    return ProviderReply(hits=tuple(one for one in found if one), cost_usd=USD_PER_SEARCH)


def _unescape(value: object) -> str:
    return unescape(value) if isinstance(value, str) else ""
