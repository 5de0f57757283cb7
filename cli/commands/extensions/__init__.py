"""Commands for what extends Windlass: plugins, skills, hooks, MCP servers, trusted folders."""
