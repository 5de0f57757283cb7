"""A user for every test, and how often runs are killed: some times in the suite, hundreds of times in a soak."""

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
    # The option is only there when this folder was asked for by name.
    return int(request.config.getoption("--kills", default=20))
