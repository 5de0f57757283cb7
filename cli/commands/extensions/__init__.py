"""Commands for extensions: plugins, skills, hooks, MCP servers, trusted folders."""
