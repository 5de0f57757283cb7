"""The tool fetch_page: fetch a web page as text, marked as untrusted data."""

from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.contract.web import FetchCall, FetchMode

MAX_OUTPUT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPageParams:
    """Arguments of fetch_page."""

    url: str
    query: Annotated[str, "return only the passages about this"] = ""
    offset: Annotated[int, "first character, to continue a long page"] = 0
    method: Annotated[
        FetchMode,
        "auto: the content as Markdown; text: all visible text; raw: the source; reader: via the user's reader service",
    ] = "auto"
    no_cache: Annotated[bool, "fetch from the server even if the page is cached"] = False


class FetchPage(Tool[FetchPageParams]):
    """Fetches a web page."""

    params = FetchPageParams
    spec = ToolSpec(
        name="fetch_page",
        description="Fetch a web page, JSON, feed, text, PDF or image by URL; returns its text as Markdown.",
        parameters=schema_of(FetchPageParams),
        effect="web",
        timeout_ms=0,
        output_chars=MAX_OUTPUT_CHARS,
    )

    def action(self, params: FetchPageParams, ctx: ExecCtx) -> Action:
        """Return the whole URL as the subject, because all of it is sent to the host."""
        return Action(tool=self.spec.name, effect="web", subject=params.url, cwd=ctx.working_dir, url=params.url)

    async def run(self, params: FetchPageParams, ctx: ExecCtx) -> ToolResult:
        """Fetch the page and extract its text; every failure becomes a ToolError or an error result."""
        if not params.url.strip():
            raise ToolError("The URL is empty.")
        call = FetchCall(
            tool=self.spec.name,
            url=params.url.strip(),
            query=params.query,
            offset=params.offset,
            mode=params.method,
            use_cache=not params.no_cache,
        )
        return await self._services.web.fetch_page(call, ctx, self._services.action_gate)
