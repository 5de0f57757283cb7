"""Memory across runs: the file, its excerpt for prompts, deciding what to keep, compaction."""
