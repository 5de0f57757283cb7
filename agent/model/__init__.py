"""Model clients: one streaming port, HTTP and litellm clients, faults, budget, scripts and cassettes."""
