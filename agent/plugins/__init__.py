"""Plugins: user code in this process or in the sandbox, and its extension points."""
