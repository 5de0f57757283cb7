"""The agent: planning, running steps, calling models, storing sessions."""
