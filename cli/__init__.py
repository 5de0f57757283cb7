"""The front ends: they send commands, show events, and alone print."""
