"""`agent acp`: Windlass in editors, over the Agent Client Protocol."""
