"""The interactive prompt: slash commands, a request queue, and the terminal UI."""
