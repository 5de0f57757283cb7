"""Running one process: start, output, limits, the end of its children."""
