"""A stage for every test."""

from pathlib import Path

import pytest

from tests.agent.orchestrator.run_harness import RunHarness


@pytest.fixture
def stage(tmp_path: Path) -> RunHarness:
    return RunHarness(home=tmp_path)
