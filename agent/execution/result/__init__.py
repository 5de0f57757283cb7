"""The result of a run: composed answer, outcome, structured output."""
