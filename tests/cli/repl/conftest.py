"""A person at a terminal with the REPL open."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import User

Open = Callable[..., TerminalSession]


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    return User(home=home)


@pytest.fixture
def sit(user: User) -> Iterator[Open]:
    """Open the REPL with a scripted model; every one that is left open is closed."""
    seats: list[TerminalSession] = []

    def open_seat(*replies: object, words: tuple[str, ...] = (), **how: object) -> TerminalSession:
        model = user.script(*replies) if replies else ""
        seats.append(TerminalSession(user, *words, model=model, **how))  # type: ignore[arg-type]
        return seats[-1]

    yield open_seat
    for seat in seats:
        seat.close()
