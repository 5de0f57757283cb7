"""Speaking to models: one streaming port, direct clients, faults, scripts and cassettes."""
