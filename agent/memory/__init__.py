"""What is remembered from run to run: the file, its excerpt for prompts, deciding, compacting."""
