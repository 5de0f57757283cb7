"""Front ends: they send commands, render events, and are the only code that prints."""
