"""The built-in tools, one per module."""
