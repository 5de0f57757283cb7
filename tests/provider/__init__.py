"""A model provider on loopback: real HTTP, scripted replies, latencies and faults."""
