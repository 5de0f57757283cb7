"""The shared data types: plan, step, status, message, usage, outcome, errors."""
