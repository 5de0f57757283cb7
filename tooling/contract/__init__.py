"""The interface for tool authors: specs, results, contexts and the ports a tool may use."""
