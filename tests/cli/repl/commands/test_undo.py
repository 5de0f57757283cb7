"""/undo and /redo on a terminal."""

import pytest

from cli.repl.commands.session_commands import NOTHING_TO_REDO
from cli.repl.repl import no_run_yet
from tests.cli.repl.terminal_session import ENTER, OpenTerminal
from tests.cli.terminal_user import one_step, step_call, step_reply

pytestmark = pytest.mark.slow


def test_redo_restores_what_undo_reverted(open_terminal: OpenTerminal) -> None:
    replies = one_step(step_call("s1", "write_file", path="x.txt", content="hello\n"), step_reply("s1", "written"))
    terminal = open_terminal(*replies, AGENT_APPROVAL_MODE="auto-edit")
    written = terminal.folder / "x.txt"
    terminal.send_line("/redo")
    terminal.wait_for(no_run_yet().message)
    terminal.send_line("write it")
    terminal.wait_for("1 ok")
    terminal.send_line("/redo")
    terminal.wait_for(NOTHING_TO_REDO)
    terminal.send_line("/undo --yes")
    terminal.wait_until(lambda: not written.exists(), "the file to go")
    terminal.pause()
    terminal.send_line("/redo --yes")
    terminal.wait_until(written.exists, "the file to come back")


def test_undo_asks_before_it_restores_files(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        *one_step(step_call("s1", "write_file", path="new.txt", content="new"), step_reply("s1", "Written.")),
        AGENT_APPROVAL_MODE="yolo",
    )
    terminal.send_line("write it")
    terminal.wait_for("1 ok")
    new = terminal.folder / "new.txt"
    assert new.read_text() == "new"
    terminal.send_line("/diff")
    terminal.wait_until(lambda: "\n+new" in terminal.full_text(), "the diff")
    terminal.send_line("/undo")
    terminal.wait_for("[y/N]")
    terminal.send("y" + ENTER)
    terminal.wait_until(lambda: not new.exists(), "the file to go")
    terminal.pause()
    terminal.send_line("/redo -y")
    terminal.wait_until(lambda: new.exists(), "the file to come back")
    assert new.read_text() == "new"


def test_a_folder_that_a_command_makes_in_a_later_request_is_undone(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        *(
            {
                "match": {"contains": request},
                "tool_calls": [{"name": "run_command", "arguments": {"command": command}}],
            }
            for request, command in (
                ("please look", "echo seen"),
                ("please make", "mkdir made && echo hi > made/it && echo done"),
            )
        ),
        {"match": {"contains": "seen"}, "text": "I looked."},
        {"match": {"contains": "done"}, "text": "I made it."},
        AGENT_PLANNING="never",
    )
    terminal.send_line("please look")
    terminal.wait_for("I looked.")
    terminal.pause()
    terminal.send_line("please make")
    terminal.wait_for("I made it.")
    terminal.pause()
    made = terminal.folder / "made"
    assert made.exists() and "internal error" not in terminal.full_text()
    terminal.send_line("/undo --yes")
    terminal.wait_until(lambda: not made.exists(), "the folder to go")
