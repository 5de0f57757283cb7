"""Where commands and tools may read and write."""
