"""Queued work: tasks, schedules, questions, and the workers that run them."""
