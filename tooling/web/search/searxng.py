"""SearXNG: GET /search?format=json of an instance that the user names; no key, no cost."""

from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import SearchFault, json_or_raise, response_fault
from tooling.web.search.types import ProviderAccess, ProviderReply, SearchQuery, build_hit, objects_at


def build_request(query: SearchQuery, access: ProviderAccess) -> WebRequest:
    """Return the request; how many results come is the instance's choice."""
    parameters = urlencode({"q": query.text, "format": "json"})
    return WebRequest(url=f"{access.url}/search?{parameters}", headers={"Accept": "application/json"}, is_trusted=True)


def parse_response(response: WebResponse) -> ProviderReply:
    """Return the results of an answer; nothing found because nobody was reached is a fault."""
    if response.status == 403:
        raise response_fault(response, "no_json")
    data = json_or_raise(response)
    found = (
        build_hit(
            title=item.get("title"), url=item.get("url"), snippet=item.get("content"), date=item.get("publishedDate")
        )
        for item in objects_at(data, "results")
    )
    hits = tuple(one for one in found if one)
    if not hits and isinstance(data, dict) and data.get("unresponsive_engines"):
        raise SearchFault("engines")
    return ProviderReply(hits=hits)
