"""Tool search instead of schemas: for many tools, and for servers whose listing is unknown."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, JsonObject, did_you_mean, schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.mcp.connection import ServerConnection
from tooling.mcp.listing import ServerListing
from tooling.mcp.tools import McpTool, ReadResource
from tooling.web.page import wrap_untrusted

SEARCH, CALL = "search_mcp_tools", "call_mcp_tool"
# With more tools than this, the model searches instead of getting all schemas with every request.
MAX_SHOWN_TOOLS = 40
_FOUND = 8
AnyMcpTool = McpTool | ReadResource


class McpToolIndex:
    """The tools of a run by name; those of an unknown server are added after it is asked."""

    def __init__(
        self,
        tools: Sequence[AnyMcpTool],
        unknown: Sequence[ServerConnection],
        build: Callable[[ServerConnection, ServerListing], Sequence[AnyMcpTool]],
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._unknown = list(unknown)
        self._build = build

    async def load(self, ctx: ExecCtx) -> list[str]:
        """Request the listings of unknown servers; return the problems."""
        problems: list[str] = []
        failed: list[ServerConnection] = []
        for connection in self._unknown:
            try:
                listing = await connection.refresh(ctx)
            except ToolError as error:
                problems.append(error.for_model)
                failed.append(connection)
                continue
            self._tools |= {tool.spec.name: tool for tool in self._build(connection, listing)}
        self._unknown = failed
        return problems

    def find(self, query: str) -> list[AnyMcpTool]:
        """Return the best matching tools: by words of the query in their names, then in their descriptions."""
        words = [word for word in query.lower().replace("_", " ").split() if word]
        scored = [(_score(tool.spec, words), tool) for tool in self._tools.values()]
        best = sorted((pair for pair in scored if pair[0] or not words), key=lambda pair: -pair[0])
        return [tool for _, tool in best[:_FOUND]]

    def get(self, name: str) -> AnyMcpTool | None:
        """Return a tool by its name."""
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        """Return the names of all tools."""
        return list(self._tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """Arguments of search_mcp_tools."""

    query: Annotated[str, "what the tool should do, in a few words; empty lists some"] = ""


class SearchMcpTools(Tool[SearchParams]):
    """Finds tools of MCP servers."""

    params = SearchParams

    def __init__(self, services: ToolServices, index: McpToolIndex, servers: Sequence[str]) -> None:
        super().__init__(services)
        self._index = index
        self.spec = ToolSpec(
            name=SEARCH,
            description=f"Find tools of the user's MCP servers ({', '.join(servers)}); call them with {CALL}.",
            parameters=schema_of(SearchParams),
            # It may start servers, which is more than reading.
            effect="note",
            timeout_ms=0,
            tags=("mcp",),
        )

    async def run(self, params: SearchParams, ctx: ExecCtx) -> ToolResult:
        """Return names, descriptions and parameters."""
        problems = await self._index.load(ctx)
        found = self._index.find(params.query)
        blocks = [f"{tool.spec.name}: {tool.spec.description}\n{json.dumps(tool.spec.parameters)}" for tool in found]
        text = "\n\n".join(blocks) or "No tool fits; try other words."
        return ToolResult("\n".join((wrap_untrusted(text, origin="MCP servers"), *problems)))


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """Arguments of call_mcp_tool: a found tool, and its own arguments."""

    tool: AnyMcpTool
    arguments: JsonObject


class CallMcpTool(Tool[McpCall]):
    """Calls a tool found by a search; it is judged and approved like the tool itself."""

    def __init__(self, services: ToolServices, index: McpToolIndex) -> None:
        super().__init__(services)
        self._index = index
        self.spec = ToolSpec(
            name=CALL,
            description=f"Call a tool found by {SEARCH}.",
            parameters={
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool", "arguments"],
            },
            effect="external",
            timeout_ms=0,
            tags=("mcp",),
        )

    def parse_arguments(self, args: object) -> McpCall:
        """Find the tool and check the arguments."""
        if not isinstance(args, Mapping) or not isinstance(args.get("tool"), str):
            raise DecodeError("missing field tool (text)")
        tool = self._index.get(args["tool"])
        if tool is None:
            known = did_you_mean(args["tool"], self._index.names)
            raise DecodeError(f"unknown tool {args['tool']!r}{known}; {SEARCH} finds tools")
        return McpCall(tool=tool, arguments=tool.parse_arguments(args.get("arguments") or {}))

    def action(self, params: McpCall, ctx: ExecCtx) -> Action:
        """Return the action of the tool itself."""
        return params.tool.action(params.arguments, ctx)

    async def run(self, params: McpCall, ctx: ExecCtx) -> ToolResult:
        """Call the tool."""
        return await params.tool.run(params.arguments, ctx)


def _score(spec: ToolSpec, words: Sequence[str]) -> int:
    name, text = spec.name.lower(), spec.description.lower()
    return sum(3 * (word in name) + (word in text) for word in words)
