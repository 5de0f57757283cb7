"""The egress proxy: the only way out of the sandbox."""
