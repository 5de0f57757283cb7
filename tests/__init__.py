"""The tests, and the loopback provider that tests and benchmarks share."""
