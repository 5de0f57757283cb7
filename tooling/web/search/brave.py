"""Brave: GET /res/v1/web/search with the key in a header of its own; billed by the request."""

from collections.abc import Mapping
from html import unescape
from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import answered, fault_of
from tooling.web.search.types import Access, Query, Reply, hit, objects_in

URL = "https://api.search.brave.com"
USD_PER_SEARCH = 0.005
_MOST_RESULTS = 20
_MOST_CHARS = 400
_MOST_WORDS = 50
_WRONG_KEY = b"SUBSCRIPTION_TOKEN_INVALID"


def request(query: Query, access: Access) -> WebRequest:
    """Return the request; the query is cut to what Brave takes."""
    words = " ".join(query.words.split()[:_MOST_WORDS])[:_MOST_CHARS]
    parameters = {
        "q": words,
        "count": min(query.count, _MOST_RESULTS),
        "result_filter": "web",
        "text_decorations": "false",
    }
    return WebRequest(
        url=f"{access.url}/res/v1/web/search?{urlencode(parameters)}",
        headers={"X-Subscription-Token": access.key, "Accept": "application/json"},
        is_trusted=True,
    )


def read(response: WebResponse) -> Reply:
    """Return the results of an answer; one without a `web` part found nothing."""
    if response.status == 422 and _WRONG_KEY in response.body:
        raise fault_of(response, "auth")
    data = answered(response)
    is_empty = isinstance(data, Mapping) and data.get("type") == "search" and "web" not in data
    listed = [] if is_empty else objects_in(data, "web", "results")
    found = (
        hit(
            title=_plain(item.get("title")),
            url=item.get("url"),
            snippet=_plain(item.get("description")),
            date=item.get("page_age") or item.get("age"),
        )
        for item in listed
    )
    return Reply(hits=tuple(one for one in found if one), cost_usd=USD_PER_SEARCH)


def _plain(value: object) -> str:
    return unescape(value) if isinstance(value, str) else ""
