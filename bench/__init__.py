"""Benchmarks of the real program, measured against its limits."""
