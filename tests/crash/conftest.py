"""A user for every test, and the number of kills: a few in the suite, hundreds in `make soak`."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=20, help="how often the crash tests kill a run")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(home=tmp_path)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    # The option exists only if this folder was given on the command line.
    return int(request.config.getoption("--kills", default=20))
