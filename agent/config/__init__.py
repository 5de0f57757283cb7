"""Settings in layers, each value with its origin. Nothing is read from the workspace."""
