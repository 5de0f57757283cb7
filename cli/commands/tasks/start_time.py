"""Times on a command line: the start of a task, and the time zone of a schedule."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from agent.vocabulary.errors import UsageError
from tooling.contract.lazy_pattern import lazy_pattern

_CLOCK = lazy_pattern(r"(\d{1,2}):(\d{2})")
_IN = lazy_pattern(
    r"\+(?=\d)(?:(?P<weeks>\d{1,5})w)?(?:(?P<days>\d{1,5})d)?(?:(?P<hours>\d{1,5})h)?(?:(?P<minutes>\d{1,5})m)?"
    r"(?:(?P<seconds>\d{1,5})s)?"
)
_DAY = lazy_pattern(r"(today|tomorrow)(?: (\d{1,2}):(\d{2}))?")
_ZONE_FOLDER = "zoneinfo"
EXPECTED = "expected a time such as 22:30, tomorrow 9:00, 2026-01-31T22:30, 2026-01-31T22:30Z or +1h30m"


def parse_start(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the time in a text, in UTC. Without a zone it is in that of this machine, or `zone`.

    A time of day alone means its next occurrence. Raises UsageError for anything else, and for the past.
    """
    words = text.strip().lower()
    if words == "now":
        return now.astimezone(UTC)
    try:
        found = _parse(words, now, zone)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--at {text}: {EXPECTED}") from error
    if found < now:
        raise UsageError(
            f"--at {text}: this time is in the past", "give a later one, or leave --at out to start at once"
        )
    return found.astimezone(UTC)


def _parse(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    local = now.astimezone(zone)
    if match := _IN.fullmatch(text):
        return now + timedelta(**{unit: int(count) for unit, count in match.groupdict(default="0").items()})
    if match := _CLOCK.fullmatch(text):
        return _next(local, int(match[1]), int(match[2]), zone)
    if match := _DAY.fullmatch(text):
        day = local.date() + timedelta(days=match[1] == "tomorrow")
        return _in_zone(datetime(day.year, day.month, day.day, int(match[2] or 0), int(match[3] or 0)), zone)
    time = datetime.fromisoformat(text.upper())
    return time if time.tzinfo else _in_zone(time, zone)


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
    """Return the name of this machine's time zone; UTC if it is unknown."""
    if name := environ.get("TZ", "").lstrip(":"):
        return name
    try:
        parts = file.resolve(strict=True).parts
    except OSError:
        return "UTC"
    return "/".join(parts[parts.index(_ZONE_FOLDER) + 1 :]) if _ZONE_FOLDER in parts else "UTC"
