"""Jina: GET / with the query as a parameter, results without the pages' texts; billed in tokens."""

from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import answered, provider_words
from tooling.web.search.types import Access, Query, Reply, hit, number_at, objects_in

URL = "https://s.jina.ai"
USD_PER_TOKEN = 0.05e-6
_NOTHING_FOUND = "no search results"


def request(query: Query, access: Access) -> WebRequest:
    """Return the request; without `no-content` every result would be read and paid for."""
    return WebRequest(
        url=f"{access.url}/?{urlencode({'q': query.words, 'num': query.count})}",
        headers={
            "Authorization": f"Bearer {access.key}",
            "Accept": "application/json",
            "X-Respond-With": "no-content",
        },
        is_trusted=True,
    )


def read(response: WebResponse) -> Reply:
    """Return the results of an answer; finding nothing comes as an error."""
    if response.status == 422 and _NOTHING_FOUND in provider_words(response).lower():
        return Reply(hits=())
    data = answered(response)
    found = (
        hit(
            title=item.get("title"),
            url=item.get("url"),
            snippet=item.get("description") or item.get("content"),
            date=item.get("date"),
        )
        for item in objects_in(data, "data")
    )
    tokens = number_at(data, "meta", "usage", "tokens") or 0
    return Reply(hits=tuple(one for one in found if one), cost_usd=tokens * USD_PER_TOKEN)
