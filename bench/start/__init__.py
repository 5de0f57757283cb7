"""Benches of starts: commands, the first request, the first word, the exit."""
