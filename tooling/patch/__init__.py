"""Patches as models write them: parse, find the place of each hunk, apply."""
