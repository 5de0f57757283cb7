"""Benches of the service: containers and the pool of executors."""
