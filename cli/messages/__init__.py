"""The catalogue of messages, and their translations."""
