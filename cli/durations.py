"""Lengths of time as a person writes them on a command line."""

from agent.vocabulary.errors import UsageError

_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0}
# The calendar begins with the year 1.
_MAX_DIGITS = 4


def parse_days(text: str, flag: str) -> float:
    """Return the days of 12h, 30d or 4w."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdecimal() or len(number) > _MAX_DIGITS:
        raise UsageError(f"{flag} {text}: expected a time such as 12h, 30d or 4w")
    return int(number) * _UNITS[unit]
