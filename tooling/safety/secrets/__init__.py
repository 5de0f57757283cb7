"""Recognize and mask secrets in text."""
