"""Searching the web: providers with their wire formats, asked in order, their results merged."""
