"""`agent run`: flags, input, progress, approvals, output."""
