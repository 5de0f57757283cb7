"""MCP servers as tools: configuration, connections, listings, and limits."""
