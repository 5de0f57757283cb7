"""Benches of the terminal: the prompt, its drawing, one frame."""
