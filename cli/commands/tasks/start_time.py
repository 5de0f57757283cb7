"""Times on a command line: when a task starts, and in which zone a schedule is read."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from agent.vocabulary.errors import UsageError
from tooling.contract.lazy_pattern import lazy_pattern

_CLOCK = lazy_pattern(r"(\d{1,2}):(\d{2})")
_IN = lazy_pattern(r"\+(\d{1,5})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_ZONE_FOLDER = "zoneinfo"
EXPECTED = "expected a time such as 22:30, 2026-01-31T22:30, 2026-01-31T22:30Z or +90m"


def parse_start(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the time that a text means, in UTC. Without a zone it is that of this machine, or `zone`.

    A time of the clock alone is the next one that comes. Raises UsageError for anything else, and for the past.
    """
    local = now.astimezone(zone)
    if match := _IN.fullmatch(text.strip()):
        return (now + timedelta(**{_UNITS[match[2]]: int(match[1])})).astimezone(UTC)
    try:
        if match := _CLOCK.fullmatch(text.strip()):
            return _next(local, int(match[1]), int(match[2]), zone)
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(f"--at {text}: {EXPECTED}") from error
    found = time if time.tzinfo else _in_zone(time, zone)
    if found < now:
        raise UsageError(f"--at {text}: this time is over", "give a later one, or leave --at out to start at once")
    return found.astimezone(UTC)


def _next(local: datetime, hour: int, minute: int, zone: tzinfo | None) -> datetime:
    for days in (0, 1, 2):
        day = local.date() + timedelta(days=days)
        found = _in_zone(datetime(day.year, day.month, day.day, hour, minute), zone)
        if found > local:
            return found.astimezone(UTC)
    raise ValueError("no such time")


def _in_zone(time: datetime, zone: tzinfo | None) -> datetime:
    return time.replace(tzinfo=zone) if zone else time.astimezone()


def local_zone(environ: Mapping[str, str], file: Path = Path("/etc/localtime")) -> str:
    """Return the name of this machine's time zone; UTC if it cannot be told."""
    if name := environ.get("TZ", "").lstrip(":"):
        return name
    try:
        parts = file.resolve(strict=True).parts
    except OSError:
        return "UTC"
    return "/".join(parts[parts.index(_ZONE_FOLDER) + 1 :]) if _ZONE_FOLDER in parts else "UTC"
