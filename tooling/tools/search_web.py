"""search_web: results of the search providers that the user has set up."""

from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.output import WEB_FETCH_TIMEOUT_MS

MAX_RESULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWebParams:
    """The words to look for, and how many results at most."""

    query: str
    count: Annotated[int, "most results"] = 8


class SearchWeb(Tool[SearchWebParams]):
    """Searches the web."""

    params = SearchWebParams
    spec = ToolSpec(
        name="search_web",
        description="Search the web; returns title, date, URL and snippet of each result.",
        parameters=schema_of(SearchWebParams),
        effect="web",
        timeout_ms=WEB_FETCH_TIMEOUT_MS,
        output_chars=40_000,
    )

    def action(self, params: SearchWebParams, ctx: ExecCtx) -> Action:
        """Return the query, for a person who wants to know what leaves the machine."""
        return Action(tool=self.spec.name, effect="web", subject=params.query, cwd=ctx.working_dir)

    async def run(self, params: SearchWebParams, ctx: ExecCtx) -> ToolResult:
        """Ask the providers in order; finding nothing is a result, reaching nobody is an error."""
        words = " ".join("".join(mark if mark.isprintable() else " " for mark in params.query).split())
        if not words:
            raise ToolError("The query is empty.")
        # The providers and their wire formats load with the first search.
        from tooling.web.search.search import search
        from tooling.web.search.types import SearchQuery

        return await search(SearchQuery(text=words, count=min(max(params.count, 1), MAX_RESULTS)), self._services.web)
