"""Slash commands: built in, from files, and from plugins."""
