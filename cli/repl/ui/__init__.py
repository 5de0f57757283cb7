"""The prompt on screen: full-screen, plain, keys, cards."""
