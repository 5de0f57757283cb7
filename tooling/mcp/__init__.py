"""MCP servers as tools: configuration, connection, what servers offer, and the limits on what they can do."""
