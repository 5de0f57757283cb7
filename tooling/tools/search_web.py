"""The tool search_web: search the web with the providers that the user has configured."""

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
    """Arguments of search_web."""

    query: str
    count: Annotated[int, "maximum results"] = 8


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
        """Return the query as the subject, so that the user sees what leaves the machine."""
        return Action(tool=self.spec.name, effect="web", subject=params.query, cwd=ctx.working_dir)

    async def run(self, params: SearchWebParams, ctx: ExecCtx) -> ToolResult:
        """Try the providers in order; no results is a result, no reachable provider an error."""
        query = " ".join("".join(char if char.isprintable() else " " for char in params.query).split())
        if not query:
            raise ToolError("The query is empty.")
        return await self._services.web.search(query, min(max(params.count, 1), MAX_RESULTS))
