"""`agent demo`: a recorded conversation, replayed with real tools."""
