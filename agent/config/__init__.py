"""Settings in layers, each value with its origin; nothing is ever read from a workspace."""
