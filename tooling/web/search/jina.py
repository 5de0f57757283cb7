"""Jina: GET / with the query as a parameter, results without the pages' texts; billed in tokens."""

from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import json_or_raise, provider_message
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery, build_hit, number_at, objects_at

URL = "https://s.jina.ai"
USD_PER_TOKEN = 0.05e-6
_NOTHING_FOUND = "no search results"


def build_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request; without `no-content` every result would be read and paid for."""
    return WebRequest(
        url=f"{access.url}/?{urlencode({'q': query.text, 'num': query.count})}",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Accept": "application/json",
            "X-Respond-With": "no-content",
        },
        is_trusted=True,
    )


def parse_response(response: WebResponse) -> ProviderReply:
    """Return the results of an answer; finding nothing comes as an error."""
    if response.status == 422 and _NOTHING_FOUND in provider_message(response).lower():
        return ProviderReply(hits=())
    data = json_or_raise(response)
    found = (
        build_hit(
            title=item.get("title"),
            url=item.get("url"),
            snippet=item.get("description") or item.get("content"),
            date=item.get("date"),
        )
        for item in objects_at(data, "data")
    )
    tokens = number_at(data, "meta", "usage", "tokens") or 0
    return ProviderReply(hits=tuple(one for one in found if one), cost_usd=tokens * USD_PER_TOKEN)
