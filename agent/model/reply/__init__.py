"""Assemble one reply from streamed chunks: text, reasoning, tool calls."""
