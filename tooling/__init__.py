"""What a model may do: tools, the one road every call takes, and the judgement on the way."""
