"""The event log of a session."""
