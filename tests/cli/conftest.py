"""The `user` fixture: a fresh home folder for every test."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(home=tmp_path)
