"""The sandbox around commands: detection, policy, self-test, limits."""
