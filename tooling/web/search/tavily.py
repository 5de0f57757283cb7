"""Tavily: POST /search with the key as a bearer token; billed in credits, one for a basic search."""

import json

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import json_or_raise
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery, build_hit, number_at, objects_at

URL = "https://api.tavily.com"
USD_PER_CREDIT = 0.008
_MAX_RESULTS = 20
_MAX_CHARS = 400


def build_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request of a basic search."""
    body = {
        "query": query.text[:_MAX_CHARS],
        "max_results": min(query.count, _MAX_RESULTS),
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


def parse_response(response: WebResponse) -> ProviderReply:
    """Return the results of an answer; `published_date` comes only with news."""
    data = json_or_raise(response)
    found = (
        build_hit(
            title=item.get("title"), url=item.get("url"), snippet=item.get("content"), date=item.get("published_date")
        )
        for item in objects_at(data, "results")
    )
    credits_used = number_at(data, "usage", "credits")
    cost_usd = USD_PER_CREDIT * (1 if credits_used is None else credits_used)
    return ProviderReply(hits=tuple(one for one in found if one), cost_usd=cost_usd)
