"""Fixture: a user who runs the real program as it comes: the lead plans when it pays."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User
from tests.docs.update_console_blocks import reader


@pytest.fixture
def user(tmp_path: Path) -> User:
    return reader(tmp_path)
