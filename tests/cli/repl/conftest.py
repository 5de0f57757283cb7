"""Fixtures: a user with a home folder, and the REPL opened in a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import OpenTerminal, TerminalSession
from tests.cli.terminal_user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    return User(home=home)


@pytest.fixture
def open_terminal(user: User) -> Iterator[OpenTerminal]:
    """Open the REPL with a scripted model; close it after the test."""
    opened: list[TerminalSession] = []

    def open_session(*replies: object, words: tuple[str, ...] = (), **options: object) -> TerminalSession:
        model = user.script(*replies) if replies else ""
        opened.append(TerminalSession(user, *words, model=model, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_session
    for terminal in opened:
        terminal.close()
