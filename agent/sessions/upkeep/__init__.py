"""Remove, check, fork and export sessions."""
