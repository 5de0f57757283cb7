"""Checkpoints: what commands change in the workspace, saved so that it can be taken back."""
