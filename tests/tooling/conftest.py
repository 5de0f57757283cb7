"""A fresh workplace for every test."""

from pathlib import Path

import pytest

from tests.tooling.tool_harness import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)
