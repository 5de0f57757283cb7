"""What may be read, written, run and shown."""
