"""Facts out, wishes in: events, commands, their one codec, and the channel between."""
