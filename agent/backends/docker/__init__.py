"""The Docker backend: commands run in a container of a local engine."""
