"""Checkpoints: saved states of the workspace, used to undo changes by commands."""
