"""What listing and inspection commands print."""
