"""From streamed chunks to one reply: text, reasoning, tool calls."""
