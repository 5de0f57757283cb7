"""Removing, checking, copying and exporting sessions."""
