"""A fresh tool harness for every test."""

from pathlib import Path

import pytest

from tests.tooling.tool_harness import ToolHarness


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)
