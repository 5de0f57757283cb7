"""Which paths tools may use, and which files contain secrets."""
