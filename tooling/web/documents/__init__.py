"""Turn a response into text: content types, feeds, PDF, worker processes."""
