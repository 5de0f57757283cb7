"""Running a plan: scheduling, the agent loop of each step, approvals, the final answer."""
