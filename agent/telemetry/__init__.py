"""What is told about runs beyond their events: the log file, traces and metrics."""
