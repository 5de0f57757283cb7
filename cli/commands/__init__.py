"""One file for each command of the contract."""
