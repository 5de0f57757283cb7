"""Shell completion for bash, zsh and fish."""
