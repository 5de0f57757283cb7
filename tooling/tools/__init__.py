"""The tools of the first set, one file each."""
