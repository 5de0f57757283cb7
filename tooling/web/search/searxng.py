"""SearXNG: GET /search?format=json of an instance that the user names; no key, no cost."""

from urllib.parse import urlencode

from tooling.web.http.messages import WebRequest, WebResponse
from tooling.web.search.errors import SearchFault, answered, fault_of
from tooling.web.search.types import Access, Query, Reply, hit, objects_in


def request(query: Query, access: Access) -> WebRequest:
    """Return the request; how many results come is the instance's choice."""
    parameters = urlencode({"q": query.words, "format": "json"})
    return WebRequest(url=f"{access.url}/search?{parameters}", headers={"Accept": "application/json"}, is_trusted=True)


def read(response: WebResponse) -> Reply:
    """Return the results of an answer; nothing found because nobody was reached is a fault."""
    if response.status == 403:
        raise fault_of(response, "no_json")
    data = answered(response)
    found = (
        hit(title=item.get("title"), url=item.get("url"), snippet=item.get("content"), date=item.get("publishedDate"))
        for item in objects_in(data, "results")
    )
    hits = tuple(one for one in found if one)
    if not hits and isinstance(data, dict) and data.get("unresponsive_engines"):
        raise SearchFault("engines")
    return Reply(hits=hits)
