"""Approval policy and the rules it is configured with."""
