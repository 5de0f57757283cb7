"""Running steps: the ready queue, the loop of model and tools, the ledger, the final answer."""
