"""The nightly window: zones, midnight, daylight saving and leap days, with a frozen clock."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.service.dbos_engine.schedules import next_firing
from agent.service.night_window import NightWindow


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "is_open"),
    [("2026-01-05 01:59", False), ("2026-01-05 02:00", True), ("2026-01-05 07:59", True), ("2026-01-05 08:00", False)],
)
def test_the_default_window_is_from_two_to_eight_utc(now: str, is_open: bool) -> None:
    assert NightWindow().is_open(utc(now)) is is_open


def test_a_window_may_go_past_midnight() -> None:
    window = NightWindow(start_hour=22, minutes=240)
    assert [window.is_open(utc(f"2026-01-05 {time}")) for time in ("21:59", "22:00", "23:59")] == [False, True, True]
    assert [window.is_open(utc(f"2026-01-06 {time}")) for time in ("00:00", "01:59", "02:00")] == [True, True, False]


def test_the_window_is_in_the_zone_of_the_user() -> None:
    window = NightWindow(zone="Asia/Tokyo")
    assert window.next_opening(utc("2026-01-05 12:00")) == utc("2026-01-05 17:00")
    assert window.is_open(utc("2026-01-05 22:00"))


def test_an_open_window_starts_at_once_and_a_closed_one_at_its_next_opening() -> None:
    assert NightWindow().next_opening(utc("2026-01-05 03:30")) == utc("2026-01-05 03:30")
    assert NightWindow().next_opening(utc("2026-01-05 08:00")) == utc("2026-01-06 02:00")


def test_a_time_that_the_clock_skips_is_the_moment_after_the_gap() -> None:
    # In Berlin the clock goes from 02:00 to 03:00 on 2026-03-29.
    window = NightWindow(zone="Europe/Berlin", start_hour=2, start_minute=30, minutes=60)
    assert window.next_opening(utc("2026-03-28 12:00")) == utc("2026-03-29 01:30")


def test_a_time_that_the_clock_repeats_opens_once() -> None:
    # 02:30 comes twice on 2026-10-25.
    window = NightWindow(zone="Europe/Berlin", start_hour=2, start_minute=30, minutes=60)
    assert window.next_opening(utc("2026-10-24 12:00")) == utc("2026-10-25 00:30")
    assert not window.is_open(utc("2026-10-25 01:35"))


def test_leap_days_are_days() -> None:
    assert NightWindow().next_opening(utc("2028-02-28 12:00")) == utc("2028-02-29 02:00")
    assert NightWindow().next_opening(utc("2028-02-29 12:00")) == utc("2028-03-01 02:00")


@given(
    st.datetimes(datetime(2025, 1, 1), datetime(2030, 1, 1)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.integers(0, 23),
    st.integers(1, 1440),
)
def test_the_next_opening_is_open_and_within_a_day_and_an_hour(
    now: datetime, zone: str, hour: int, minutes: int
) -> None:
    window = NightWindow(zone=zone, start_hour=hour, minutes=minutes)
    opening = window.next_opening(now.replace(tzinfo=UTC))
    assert window.is_open(opening)
    assert timedelta(0) <= opening - now.replace(tzinfo=UTC) <= timedelta(hours=25, minutes=30)


def test_cron_is_read_in_its_zone_with_daylight_saving_and_leap_days() -> None:
    assert next_firing("30 9 * * *", "Europe/Berlin", utc("2026-03-28 12:00")) == utc("2026-03-29 07:30")
    assert next_firing("30 9 * * *", "Europe/Berlin", utc("2026-03-27 12:00")) == utc("2026-03-28 08:30")
    assert next_firing("0 0 29 2 *", "UTC", utc("2026-01-01 00:00")) == utc("2028-02-29 00:00")
    first = next_firing("0 4 * * 1", "UTC", utc("2026-01-01 00:00"))
    assert [first, next_firing("0 4 * * 1", "UTC", first)] == [utc("2026-01-05 04:00"), utc("2026-01-12 04:00")]
