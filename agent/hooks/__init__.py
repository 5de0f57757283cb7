"""Hooks: code of users around a run, and the hooks that Windlass has built in."""
