"""A fresh workplace for every test."""

from pathlib import Path

import pytest

from tests.tooling.tool_harness import ToolHarness


@pytest.fixture
def place(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)
