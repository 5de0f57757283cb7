"""Hooks: user code around a run, and the built-in hooks."""
