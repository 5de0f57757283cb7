"""Sessions on disk: folders, the event log that is the truth, and what is folded from it."""
