"""Completion in the shell: what can stand at the cursor, said to bash, zsh and fish."""
