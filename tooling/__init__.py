"""Tools, the path that every tool call takes, and the safety checks along it."""
