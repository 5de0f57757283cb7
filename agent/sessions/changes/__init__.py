"""File changes of a session, and undoing them."""
