"""The demonstration: a recorded conversation, played with real tools."""
