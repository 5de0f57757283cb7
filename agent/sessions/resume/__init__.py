"""State needed to resume or replay a run."""
