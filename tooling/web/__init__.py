"""The web as tools see it: which addresses may be reached, and how."""
