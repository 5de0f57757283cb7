"""A stage for every test."""

from pathlib import Path

import pytest

from tests.orchestrator.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(home=tmp_path)
