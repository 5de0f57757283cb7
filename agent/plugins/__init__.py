"""Plugins: code of users in this process, or in the sandbox, and what it may add."""
