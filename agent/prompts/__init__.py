"""The prompts, one readable file each, and their loader."""
