"""Backends: where tool calls and their processes run."""
