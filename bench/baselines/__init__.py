"""Scripts that measured programs are compared with: the shortest code that does the same on the wire."""
