"""Judge what tools may read, write, run and send, and mask secrets."""
