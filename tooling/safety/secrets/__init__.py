"""Finding and masking secrets."""
