"""The image that the tests of this folder attach."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User
from tests.tooling.images.sample_images import SHOT


@pytest.fixture
def shot(user: User) -> Path:
    path = user.home / "shot.png"
    path.write_bytes(SHOT)
    return path
