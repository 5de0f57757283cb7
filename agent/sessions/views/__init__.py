"""Read-only views folded from event logs."""
