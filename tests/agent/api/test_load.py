"""The short form of the load in `bench/server.py`: nothing fails, and every client gets every event once."""

import pytest

from bench.server import measure

pytestmark = pytest.mark.slow


def test_many_streams_and_requests_at_once_lose_nothing() -> None:
    load = measure(clients=40, rate=20, seconds=3)
    assert load.errors == []
    assert len(load.events) == 40
    assert load.missing == 0
    assert load.times
