"""Git repositories in the workspace: what git reads as configuration or runs is kept from commands."""
