"""A stage for every test."""

from pathlib import Path

import pytest

from tests.agent.orchestrator.run_harness import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(home=tmp_path)
