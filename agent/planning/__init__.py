"""Turning a request into a graph of steps."""
