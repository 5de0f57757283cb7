"""The Docker backend: commands run in a container of an engine on this machine."""
