"""Small tasks for a real model, each with files, a request and an exact check."""
