"""Tab in real shells: installed as a person installs it, typed as a person types."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.completion.shell_session import ShellSeat, files_of, need, start_files
from tests.cli.repl.terminal_session import TAB
from tests.cli.terminal_user import User, answer

pytestmark = pytest.mark.slow
SHELLS = ("bash", "zsh", "fish")
EVIL = "evil \x1b[31m\x07$(touch pwned) `touch pwned` title; * \u202e"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, user: User) -> Iterator[ShellSeat]:
    need(request.param)
    start_files(user)
    ended = user.agent("--install-completion", request.param)
    assert ended.exit_code == 0, ended.stderr
    seat = ShellSeat(user, request.param)
    yield seat
    seat.close()


def becomes(seat: ShellSeat, typed: str, line: str) -> None:
    """Type something with Tab at its end and wait for the line it becomes; then clear the line."""
    seat.types(typed + TAB)
    seat.until(lambda: seat.line().rstrip() == line.rstrip(), f"the line {line!r}")
    seat.types("\x15")
    seat.until(lambda: not seat.line().strip(), "the line to be cleared")


def test_words_are_completed(shell: ShellSeat) -> None:
    files_of(shell.user, "plans/one.toml", "notes.txt", "dir with blanks/x")
    becomes(shell, "agent sess", "agent sessions")
    becomes(shell, "agent run --approv", "agent run --approval-mode")
    becomes(shell, "agent run --approval-mode au", "agent run --approval-mode auto-edit")
    becomes(shell, "agent run --approval-mode=yo", "agent run --approval-mode=yolo")
    becomes(shell, "windlass config get max_bud", "windlass config get max_budget_usd")
    becomes(shell, "agent run --set replan=sur", "agent run --set replan=surprise")
    becomes(shell, "agent run --plan pl", "agent run --plan plans/")
    becomes(shell, "agent run --plan plans/o", "agent run --plan plans/one.toml")
    becomes(shell, "agent run --model script:no", "agent run --model script:notes.txt")
    becomes(shell, "agent run -C dir", "agent run -C dir\\ with\\ blanks/")
    becomes(shell, "agent tools call read_file pa", "agent tools call read_file path=")


def test_several_candidates_are_listed_with_what_they_mean(shell: ShellSeat) -> None:
    shell.types("agent ru" + shell.listing)
    shown = shell.sees("Which commands run unasked")
    assert "Do one task, start to end." in shown
    assert shell.line().rstrip() == "agent ru"


@pytest.fixture
def sessions(user: User) -> Callable[[], None]:
    def made() -> None:
        model = user.script(answer("Hello."))
        for name in ("alpha-one", "alpha-two"):
            assert user.agent("run", "--model", model, "--session", name, f"greet {name}").exit_code == 0
        (user.data / "sessions" / "alpha-two" / "title").write_text(EVIL)

    return made


def test_sessions_are_listed_with_titles_that_do_nothing(shell: ShellSeat, sessions: Callable[[], None]) -> None:
    sessions()
    before = len(shell.bytes_seen)
    shell.types("agent sessions show alpha-" + shell.listing)
    shown = shell.sees("evil")
    assert "greet alpha-one" in shown and "alpha-two" in shown
    assert b"\x1b[31m" not in shell.bytes_seen[before:] and b"\x07$" not in shell.bytes_seen[before:]
    shell.types("\x15")
    becomes(shell, "agent sessions show alpha-t", "agent sessions show alpha-two")
    becomes(shell, "agent run --session alpha-o", "agent run --session alpha-one")
    becomes(shell, "agent runs show l", "agent runs show last")
    assert not list(shell.user.home.rglob("pwned"))
