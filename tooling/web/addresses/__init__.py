"""Checks of the hosts and addresses that a request may go to."""
