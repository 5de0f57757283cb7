"""Telemetry of runs: the log file, traces and metrics."""
