"""The output of commands that list and inspect past work."""
