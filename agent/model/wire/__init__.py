"""Direct HTTP clients for OpenAI-compatible and Anthropic servers."""
