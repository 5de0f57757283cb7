"""Tools, the path of every tool call, and the safety checks along it."""
