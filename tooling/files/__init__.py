"""Files beneath a folder: reached by descriptor, replaced whole, kept so that a change can be undone."""
