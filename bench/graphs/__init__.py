"""Graphs of steps, against their critical path and a bare loop."""
