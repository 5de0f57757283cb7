"""Tab completion in real shells, installed as a user would install it."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.completion.shell_session import ShellSession, create_files, write_start_files
from tests.cli.repl.terminal_session import TAB
from tests.cli.terminal_user import User, answer
from tests.programs import require

pytestmark = pytest.mark.slow
SHELLS = ("bash", "zsh", "fish")
EVIL = "evil \x1b[31m\x07$(touch pwned) `touch pwned` title; * \u202e"


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, user: User) -> Iterator[ShellSession]:
    require(request.param)
    write_start_files(user)
    ended = user.agent("--install-completion", request.param)
    assert ended.exit_code == 0, ended.stderr
    session = ShellSession(user, request.param)
    yield session
    session.close()


def assert_completes(shell: ShellSession, typed: str, line: str) -> None:
    """Type a text and Tab, wait for the completed line, then clear it."""
    shell.send(typed + TAB)
    shell.wait_until(lambda: shell.typed_line().rstrip() == line.rstrip(), f"the line {line!r}")
    shell.send("\x15")
    shell.wait_until(lambda: not shell.typed_line().strip(), "the line to be cleared")


def test_words_are_completed(shell: ShellSession) -> None:
    create_files(shell.user, "plans/one.toml", "notes.txt", "dir with blanks/x")
    assert_completes(shell, "agent sess", "agent sessions")
    assert_completes(shell, "agent run --approv", "agent run --approval-mode")
    assert_completes(shell, "agent run --approval-mode au", "agent run --approval-mode auto-edit")
    assert_completes(shell, "agent run --approval-mode=yo", "agent run --approval-mode=yolo")
    assert_completes(shell, "windlass config get max_bud", "windlass config get max_budget_usd")
    assert_completes(shell, "agent run --set replan=sur", "agent run --set replan=surprise")
    assert_completes(shell, "agent run --plan pl", "agent run --plan plans/")
    assert_completes(shell, "agent run --plan plans/o", "agent run --plan plans/one.toml")
    assert_completes(shell, "agent run --model script:no", "agent run --model script:notes.txt")
    assert_completes(shell, "agent run -C dir", "agent run -C dir\\ with\\ blanks/")
    assert_completes(shell, "agent tools call read_file pa", "agent tools call read_file path=")


def test_several_candidates_are_listed_with_descriptions(shell: ShellSession) -> None:
    shell.send("agent ru" + shell.list_keys)
    shown = shell.wait_for("Manage rules")
    assert "Run a task and print the answer." in shown
    assert shell.typed_line().rstrip() == "agent ru"


@pytest.fixture
def sessions(user: User) -> Callable[[], None]:
    def create() -> None:
        model = user.script(answer("Hello."))
        for name in ("alpha-one", "alpha-two"):
            assert user.agent("run", "--model", model, "--session", name, f"greet {name}").exit_code == 0
        (user.data / "sessions" / "alpha-two" / "title").write_text(EVIL)

    return create


def test_hostile_session_titles_are_listed_harmlessly(shell: ShellSession, sessions: Callable[[], None]) -> None:
    sessions()
    before = len(shell.raw_output)
    shell.send("agent sessions show alpha-" + shell.list_keys)
    shell.wait_for("evil")
    shown = shell.wait_for("greet alpha-one")
    assert "greet alpha-one" in shown and "alpha-two" in shown
    assert b"\x1b[31m" not in shell.raw_output[before:] and b"\x07$" not in shell.raw_output[before:]
    shell.send("\x15")
    assert_completes(shell, "agent sessions show alpha-t", "agent sessions show alpha-two")
    assert_completes(shell, "agent run --session alpha-o", "agent run --session alpha-one")
    assert_completes(shell, "agent runs show l", "agent runs show last")
    assert not list(shell.user.home.rglob("pwned"))
