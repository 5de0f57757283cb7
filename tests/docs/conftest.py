"""Fixture: a user who runs the real program."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(home=tmp_path)
