"""When a task starts, as it is written on a command line."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.vocabulary.errors import UsageError
from cli.commands.tasks.start_time import local_zone, parse_start

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 1, 5, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22:30", "2026-01-05T21:30"),
        ("20:30", "2026-01-06T19:30"),
        ("2026-01-31T22:30", "2026-01-31T21:30"),
        ("2026-01-31T22:30Z", "2026-01-31T22:30"),
        ("2026-01-31T22:30-05:00", "2026-02-01T03:30"),
        ("2026-02-01", "2026-01-31T23:00"),
        ("+90m", "2026-01-05T21:30"),
        ("+2h", "2026-01-05T22:00"),
        ("+1d", "2026-01-06T20:00"),
        ("+2w", "2026-01-19T20:00"),
        ("+1h30m", "2026-01-05T21:30"),
        ("+90s", "2026-01-05T20:01:30"),
        ("tomorrow 9:00", "2026-01-06T08:00"),
        ("today 22:30", "2026-01-05T21:30"),
        ("tomorrow", "2026-01-05T23:00"),
        ("now", "2026-01-05T20:00"),
    ],
)
def test_a_time_is_read_in_the_zone_of_the_user(text: str, expected: str) -> None:
    assert parse_start(text, NOW, BERLIN) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "2026-13-01", "+5x", "+", "+30m1h", "+99999999d", "-5m", "today 20:30", "2020-01-01"]
)
def test_anything_else_and_the_past_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--at"):
        parse_start(text, NOW, BERLIN)


def test_the_zone_of_a_machine_has_a_name(tmp_path: Path) -> None:
    zone = tmp_path / "zoneinfo" / "Europe" / "Berlin"
    zone.parent.mkdir(parents=True)
    zone.touch()
    link = tmp_path / "localtime"
    link.symlink_to(zone)
    assert local_zone({}, link) == "Europe/Berlin"
    assert local_zone({"TZ": ":Asia/Tokyo"}, link) == "Asia/Tokyo"
    assert local_zone({}, tmp_path / "missing") == "UTC"
