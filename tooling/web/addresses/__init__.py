"""Which hosts and addresses a request may go to."""
