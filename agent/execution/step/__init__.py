"""One step: the agent loop, its tool calls, context and result."""
