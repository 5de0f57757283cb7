"""The `server` fixture: a running server for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.api.served import Server, serve


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path / "data") as running:
        yield running
        assert running.bugs == []
