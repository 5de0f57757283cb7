"""All a tool author must know: specs, results, contexts and the ports a tool may use."""
