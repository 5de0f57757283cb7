"""The graph of steps: scheduling, state, replanning, cached results."""
