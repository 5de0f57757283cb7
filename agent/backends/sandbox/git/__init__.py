"""Protection of git repositories: commands must not change files that git executes or reads as configuration."""
