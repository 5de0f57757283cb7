"""Planning: turning a request or a plan file into a graph of steps."""
