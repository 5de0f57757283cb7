"""Measures how the model is used: requests, bytes, prefixes, and small tasks on a real model."""
