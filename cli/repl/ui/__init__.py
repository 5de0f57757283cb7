"""Terminal UIs of the REPL: the drawn one, the plain one, and their parts."""
