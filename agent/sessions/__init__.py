"""Sessions on disk: their folders, event logs, and the views derived from those logs."""
