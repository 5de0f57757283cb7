"""Events out, commands in: their types, the codec, and the event channel."""
