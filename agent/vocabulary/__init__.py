"""The words every room uses: plan, step, status, message, usage, outcome."""
