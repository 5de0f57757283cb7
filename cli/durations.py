"""Durations on a command line: 12h, 30d, 4w."""

from agent.vocabulary.errors import UsageError

_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}
# Enough digits for any date: Python's calendar starts in year 1.
_MAX_DIGITS = 4
EXPECTED = "expected a duration such as 12h, 30d or 4w"


def parse_days(text: str, flag: str) -> float:
    """Parse a duration into days, or raise UsageError naming the flag."""
    number, unit = text[:-1], text[-1:]
    if unit not in _DAYS or not number.isdecimal() or len(number) > _MAX_DIGITS:
        raise UsageError(f"{flag} {text}: {EXPECTED}")
    return int(number) * _DAYS[unit]
