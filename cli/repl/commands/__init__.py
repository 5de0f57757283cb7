"""Slash commands of the prompt."""
