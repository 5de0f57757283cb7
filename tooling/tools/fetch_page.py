"""fetch_page: the text of a page on the web, marked as data."""

import asyncio
from importlib import import_module
from typing import Annotated, Literal

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec

MAX_OUTPUT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPageParams:
    """Which page, and which part of it."""

    url: str
    query: Annotated[str, "return only the passages about this"] = ""
    offset: Annotated[int, "first character, to go on with a long page"] = 0
    method: Annotated[
        Literal["auto", "text", "raw", "reader"],
        "auto: the content as Markdown; text: all visible text; raw: the source; reader: by the user's reader service",
    ] = "auto"
    no_cache: Annotated[bool, "ask the server even if a copy was kept"] = False


class FetchPage(Tool[FetchPageParams]):
    """Fetches a page."""

    params = FetchPageParams
    spec = ToolSpec(
        name="fetch_page",
        description="Fetch a web page, JSON, feed, text or PDF by URL; returns its text as Markdown.",
        parameters=schema_of(FetchPageParams),
        effect="web",
        timeout_ms=0,
        output_chars=MAX_OUTPUT_CHARS,
    )

    def action(self, params: FetchPageParams, ctx: ExecCtx) -> Action:
        """Return the address, which goes to its host whole."""
        return Action(tool=self.spec.name, effect="web", subject=params.url, cwd=ctx.working_dir, url=params.url)

    async def run(self, params: FetchPageParams, ctx: ExecCtx) -> ToolResult:
        """Fetch and read it; every failure is one sentence."""
        if not params.url.strip():
            raise ToolError("The URL is empty.")
        # The client and the readers of pages load with the first one, and not in the loop's own time.
        await asyncio.to_thread(import_module, "tooling.web.fetch_result")
        from tooling.web.fetch_result import FetchCall, fetch_page

        wish = FetchCall(
            tool=self.spec.name,
            url=params.url.strip(),
            query=params.query,
            offset=params.offset,
            mode=params.method,
            use_cache=not params.no_cache,
        )
        return await fetch_page(wish, self._services, ctx)
