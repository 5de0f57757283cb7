"""Where tool calls and their processes run."""
