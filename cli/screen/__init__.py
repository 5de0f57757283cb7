"""What a run looks like to a person: events in, lines out; nothing here writes to a terminal."""
