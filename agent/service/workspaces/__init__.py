"""Workspaces of users and sessions for executors: layout, clean-up, archives."""
