"""Tables of what programs run: interpreters, wrappers, options, dangerous calls."""
