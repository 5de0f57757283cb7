"""The page of `agent serve`: tasks, schedules, questions and live runs in a browser."""
