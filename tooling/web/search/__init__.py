"""Web search: providers queried in order, their results merged."""
