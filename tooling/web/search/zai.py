"""Z.AI: POST /paas/v4/web_search; a proxy that holds the key for others gives the same answers to GET /zai/search."""

import json
from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import answered, fault_of
from tooling.web.search.types import Access, Query, Reply, hit, objects_in

URL = "https://api.z.ai/api"
USD_PER_SEARCH = 0.01
_MOST_RESULTS = 50
# An account without money answers as if it were asked too often.
_NO_BALANCE = b'"1113"'


def request(query: Query, access: Access) -> WebRequest:
    """Return the request."""
    body = {
        "search_engine": "search-prime",
        "search_query": query.words,
        "count": min(query.count, _MOST_RESULTS),
    }
    return WebRequest(
        url=f"{access.url}/paas/v4/web_search",
        method="POST",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Content-Type": "application/json",
            "Accept-Language": "en-US,en",
        },
        body=json.dumps(body).encode(),
        is_trusted=True,
    )


def request_of_proxy(query: Query, access: Access) -> WebRequest:
    """Return the request to a proxy, which knows the key itself."""
    return WebRequest(url=f"{access.url}/zai/search?{urlencode({'q': query.words})}", is_trusted=True)


def read(response: WebResponse) -> Reply:
    """Return the results of an answer."""
    reply = read_of_proxy(response)
    return Reply(hits=reply.hits, cost_usd=USD_PER_SEARCH)


def read_of_proxy(response: WebResponse) -> Reply:
    """Return the results of a proxy's answer; what they cost is the proxy's business."""
    if response.status == 429 and _NO_BALANCE in response.body:
        raise fault_of(response, "quota")
    found = (
        hit(
            title=item.get("title"),
            url=item.get("link") or item.get("url"),
            snippet=item.get("content"),
            date=item.get("publish_date"),
        )
        for item in objects_in(answered(response), "search_result")
    )
    return Reply(hits=tuple(one for one in found if one))
