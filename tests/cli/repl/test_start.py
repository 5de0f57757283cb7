"""How the prompt is opened: with a request, a folder, a model and other flags, and how it is left."""

import pytest

from tests.cli.repl.terminal_session import OpenTerminal
from tests.cli.terminal_user import User, lead_call, lead_reply

pytestmark = pytest.mark.slow


def test_a_request_on_the_command_line_is_the_first_one(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        {**lead_reply("The bug is fixed."), "match": {"purpose": "lead", "contains": "fix the bug"}},
        lead_reply("Anything else?"),
        words=("fix the bug",),
        AGENT_PLANNING="auto",
    )
    shown = terminal.wait_for("The bug is fixed.")
    assert "> fix the bug" in shown
    terminal.send_line("and now?")
    terminal.wait_for("Anything else?")
    terminal.send_line("/quit")
    assert terminal.wait_exit() == 0


def test_the_prompt_takes_the_flags_of_a_run(open_terminal: OpenTerminal, user: User) -> None:
    folder = user.home / "elsewhere"
    folder.mkdir()
    model = user.script(lead_call("write_file", path="made.txt", content="x"), lead_reply("Made."), name="other.jsonl")
    terminal = open_terminal(
        words=("--model", model, "-C", "../elsewhere", "--approval-mode", "auto-edit", "make it now"),
        columns=200,
        AGENT_PLANNING="auto",
    )
    terminal.wait_for("Made.")
    assert "auto-edit · ~/elsewhere" in terminal.wait_for("~/elsewhere")
    assert (folder / "made.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "x", "--approval-mode", "bogus"), "ask, auto-edit, never, yolo, plan"),
        (("-C", "missing"), "missing is not an existing folder"),
    ],
)
def test_a_wrong_flag_ends_before_the_prompt_opens(
    open_terminal: OpenTerminal, words: tuple[str, ...], said: str
) -> None:
    terminal = open_terminal(words=words, columns=200)
    terminal.wait_for(said)
    assert terminal.wait_exit() in (2, 42, 44)
