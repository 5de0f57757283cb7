"""Rendering of a run: events in, lines out; nothing here writes to a terminal."""
