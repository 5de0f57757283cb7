"""Models without a network: scripts and cassettes."""
