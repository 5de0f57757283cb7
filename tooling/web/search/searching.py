"""A whole search: from words to the result that model and person read."""

from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.web.search.blocks import for_model, for_person
from tooling.web.search.providers import setup_words, usable
from tooling.web.search.search import Search
from tooling.web.search.types import Query
from tooling.web.session import WebDesk


async def search(query: Query, web: WebDesk) -> ToolResult:
    """Ask the providers that are set up; finding nothing is a result, reaching nobody is an error."""
    if not usable(web.settings):
        raise ToolError(f"No search provider is set up. The user can set {setup_words(web.settings.search_order)}.")
    client = await web.client()
    found = await Search(web.settings, client.send).find(query)
    if not found.answered:
        told = "; ".join(f"{name}: {why}" for name, why in found.failed.items())
        raise ToolError(f"No search provider answered. {told}.")
    return ToolResult(for_model(found), display=for_person(found), meta=ToolMeta(cost_usd=found.cost_usd))
