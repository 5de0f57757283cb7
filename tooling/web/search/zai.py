"""Z.AI: POST /paas/v4/web_search; a proxy that holds the key for others gives the same answers to GET /zai/search."""

import json
from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import json_or_raise, response_fault
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery, build_hit, objects_at

URL = "https://api.z.ai/api"
USD_PER_SEARCH = 0.01
_MAX_RESULTS = 50
# An account without money answers as if it were asked too often.
_NO_BALANCE = b'"1113"'


def build_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request."""
    body = {
        "search_engine": "search-prime",
        "search_query": query.text,
        "count": min(query.count, _MAX_RESULTS),
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


def build_proxy_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request to a proxy, which knows the key itself."""
    return WebRequest(url=f"{access.url}/zai/search?{urlencode({'q': query.text})}", is_trusted=True)


def parse_response(response: WebResponse) -> ProviderReply:
    """Return the results of an answer."""
    reply = parse_proxy_response(response)
    return ProviderReply(hits=reply.hits, cost_usd=USD_PER_SEARCH)


def parse_proxy_response(response: WebResponse) -> ProviderReply:
    """Return the results of a proxy's answer; what they cost is the proxy's business."""
    if response.status == 429 and _NO_BALANCE in response.body:
        raise response_fault(response, "quota")
    found = (
        build_hit(
            title=item.get("title"),
            url=item.get("link") or item.get("url"),
            snippet=item.get("content"),
            date=item.get("publish_date"),
        )
        for item in objects_at(json_or_raise(response), "search_result")
    )
    return ProviderReply(hits=tuple(one for one in found if one))
