"""Baseline scripts: the shortest code that does the same on the wire as a measured program."""
