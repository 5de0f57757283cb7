"""The run harness as a fixture."""

from pathlib import Path

import pytest

from tests.agent.orchestrator.run_harness import RunHarness


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    return RunHarness(home=tmp_path)
