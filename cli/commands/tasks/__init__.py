"""Commands for queued work, one file each."""
