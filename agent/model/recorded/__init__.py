"""Models without a network: scripts, and cassettes of recorded exchanges."""
