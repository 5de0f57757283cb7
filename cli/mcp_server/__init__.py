"""`agent mcp serve`: Windlass as an MCP server for other agents."""
