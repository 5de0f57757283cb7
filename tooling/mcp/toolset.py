"""The MCP tools of a run: all of them with their schemas, or a search if there are many."""

from collections.abc import Callable, Sequence

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.tool import AnyTool, ToolServices
from tooling.mcp.connection import ServerConnection
from tooling.mcp.listing import ServerListing, full_name
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.search import MAX_SHOWN_TOOLS, AnyMcpTool, CallMcpTool, McpToolIndex, SearchMcpTools
from tooling.mcp.tools import READ_RESOURCE, McpTool, ReadResource


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolset:
    """The tools of the offered servers. `hidden` ones can be called, but their schemas are only found by a search."""

    tools: tuple[AnyTool, ...]
    hidden: tuple[AnyTool, ...]


def build_toolset(
    connections: Sequence[ServerConnection],
    services: ToolServices,
    store: ListingStore,
    add_tool: Callable[[AnyTool], None],
) -> McpToolset:
    """Build the tools from the last listings without starting servers. `add_tool` gets tools found later."""

    def build(connection: ServerConnection, listing: ServerListing) -> list[AnyMcpTool]:
        return build_server_tools(connection, listing, services, store)

    def build_late(connection: ServerConnection, listing: ServerListing) -> list[AnyMcpTool]:
        tools = build(connection, listing)
        for tool in tools:
            add_tool(tool)
        return tools

    known = [(connection, store.load(connection.server)) for connection in connections]
    unknown = [connection for connection, listing in known if listing is None]
    tools = tuple(tool for connection, listing in known if listing is not None for tool in build(connection, listing))
    index = McpToolIndex(tools, unknown, build_late)
    search = (
        SearchMcpTools(services, index, [connection.server.name for connection in connections]),
        CallMcpTool(services, index),
    )
    if not unknown and len(tools) <= MAX_SHOWN_TOOLS:
        # A conversation that started with a search may continue with it.
        return McpToolset(tools=tools, hidden=search)
    return McpToolset(tools=search, hidden=tools)


def build_server_tools(
    connection: ServerConnection, listing: ServerListing, services: ToolServices, store: ListingStore
) -> list[AnyMcpTool]:
    """Return the enabled tools of one server."""
    server = connection.server
    tools: dict[str, AnyMcpTool] = {}
    for offered in listing.tools:
        if server.uses(offered.name):
            tools.setdefault(full_name(server.name, offered.name), McpTool(services, connection, offered, store))
    if listing.resources and server.uses(READ_RESOURCE):
        tools.setdefault(full_name(server.name, READ_RESOURCE), ReadResource(services, connection, listing.resources))
    return list(tools.values())
