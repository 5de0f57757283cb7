"""The hours in which nightly tasks may start, in the user's time zone; the window may extend past midnight."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tooling.contract.fast_dataclass import dataclass

DAY_MINUTES = 24 * 60
# A window that covers the whole day has no closing time.
_SEARCH_DAYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NightWindow:
    """Opens every day at a local time, for a number of elapsed minutes."""

    zone: str = "UTC"
    start_hour: int = 2
    start_minute: int = 0
    minutes: int = 360

    def is_open(self, now: datetime) -> bool:
        """Whether a nightly task may start now."""
        return any(opening <= now < opening + timedelta(minutes=self.minutes) for opening in self._openings(now))

    def next_opening(self, now: datetime) -> datetime:
        """Return `now` if the window is open, else the time of its next opening; in UTC."""
        if self.is_open(now):
            return now.astimezone(UTC)
        return next(opening for opening in self._openings(now) if opening > now)

    def _openings(self, now: datetime) -> list[datetime]:
        """Return the openings of the days around `now`, in order.

        A local time that the clock skips means the moment after the gap; a repeated one means the first occurrence.
        """
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        days = (today + timedelta(days=offset) for offset in range(-2, _SEARCH_DAYS))
        local = (datetime(day.year, day.month, day.day, self.start_hour, self.start_minute) for day in days)
        return [time.replace(tzinfo=zone).astimezone(UTC) for time in local]
