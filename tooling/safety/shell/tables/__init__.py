"""Tables of the code that programs run: interpreters, wrappers, options, dangerous calls."""
