"""Commands about queued work, one file each."""
