"""Numbers and arguments in as few characters as a person can read."""

from collections.abc import Mapping

_SUBJECT_KEYS = ("command", "path", "url", "query", "pattern", "question", "action")


def format_duration(seconds: float) -> str:
    """Return a length of time: 0.4s, 12s, 3m05s, 2h10m."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def format_count(number: int) -> str:
    """Return a count: 950, 1.2k, 34k, 1.5M."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            value = number / limit
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return str(number)


def format_cost(usd: float) -> str:
    """Return a sum of money: $0.0004, $0.03, $12.50."""
    return f"${usd:.4f}" if usd < 0.01 else f"${usd:.2f}"


def call_subject(arguments: Mapping[str, object]) -> str:
    """Return what a call is about: its command, its path, its address."""
    return next((" ".join(str(arguments[name]).split()) for name in _SUBJECT_KEYS if arguments.get(name)), "")
