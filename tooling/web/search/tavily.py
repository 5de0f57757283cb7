"""Tavily: POST /search with the key as a bearer token; billed in credits, one for a basic search."""

import json

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import answered
from tooling.web.search.types import Access, Query, Reply, hit, number_at, objects_in

URL = "https://api.tavily.com"
USD_PER_CREDIT = 0.008
_MOST_RESULTS = 20
_MOST_CHARS = 400


def request(query: Query, access: Access) -> WebRequest:
    """Return the request of a basic search."""
    body = {
        "query": query.words[:_MOST_CHARS],
        "max_results": min(query.count, _MOST_RESULTS),
        "search_depth": "basic",
        "include_usage": True,
    }
    return WebRequest(
        url=f"{access.url}/search",
        method="POST",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        },
        body=json.dumps(body).encode(),
        is_trusted=True,
    )


def read(response: WebResponse) -> Reply:
    """Return the results of an answer; `published_date` comes only with news."""
    data = answered(response)
    found = (
        hit(title=item.get("title"), url=item.get("url"), snippet=item.get("content"), date=item.get("published_date"))
        for item in objects_in(data, "results")
    )
    credits_used = number_at(data, "usage", "credits")
    cost_usd = USD_PER_CREDIT * (1 if credits_used is None else credits_used)
    return Reply(hits=tuple(one for one in found if one), cost_usd=cost_usd)
