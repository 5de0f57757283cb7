"""Esc stops the run so that the user can redirect it; Esc Esc rewinds to an earlier request."""

import os
import signal

import pytest

from cli.repl.commands.session_commands import REWOUND, WHICH_REQUEST
from cli.repl.ui.approval_cards import DENY_HINT, FOCUS_HINT
from tests.cli.repl.terminal_session import ENTER, ESC, UP, OpenTerminal
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.repl.test_endings import AGAIN, assert_usable, has_event, result_of
from tests.cli.repl.ui.test_approvals_inline import PUSH
from tests.cli.repl.ui.test_input import MODEL_HELP
from tests.cli.terminal_user import one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
WORDS = "First part.\n\n" + "word " * 200


def test_escape_stops_the_run_keeps_its_words_and_runs_what_is_sent_next(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(AGAIN, *one_step(step_reply("s1", WORDS, chunks=200, chunk_delay_ms=100)))
    terminal.send_line("start")
    terminal.wait_for("word word")
    # Typed before the run has ended, and ahead of what is queued.
    terminal.send("later" + ENTER)
    terminal.wait_for("queued: later")
    terminal.send(ESC)
    terminal.wait_until(lambda: result_of(terminal) == [130], "the run to end")
    shown = assert_usable(terminal)
    assert "First part." in shown and "word word" in shown
    assert result_of(terminal)[:2] == [130, 0]


def test_words_sent_while_the_run_is_being_stopped_run_next(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(AGAIN, *one_step(step_call("s1", "run_command", command="trap '' TERM INT; sleep 60")))
    terminal.send_line("start")
    terminal.wait_until(has_event(terminal, "tool.started"), "the command")
    terminal.send(ESC)
    terminal.pause()
    assert_usable(terminal)
    assert result_of(terminal) == [130, 0]


def test_escape_sequences_menus_and_cards_do_not_stop_the_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(AGAIN, *one_step(step_call("s1", "run_command", command=PUSH)))
    terminal.send_line("start")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send(ESC)
    terminal.wait_for(FOCUS_HINT)
    for keys in (UP, f"{ESC}b", f"{ESC}[1;5C", ESC):
        terminal.send(keys)
        terminal.pause()
    terminal.send("\x15/mo")
    terminal.wait_for(MODEL_HELP)
    terminal.send(ESC)
    terminal.wait_gone(MODEL_HELP)
    assert result_of(terminal) == []


def test_escape_twice_rewinds_files_and_conversation_to_an_earlier_request(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        reply_to("one", plan(step("a"))),
        step_call("a", "write_file", path="a.txt", content="one\n"),
        step_reply("a", "Wrote one."),
        reply_to("two", plan(step("b"))),
        step_call("b", "write_file", path="b.txt", content="two\n"),
        step_reply("b", "Wrote two."),
        AGAIN,
        AGENT_APPROVAL_MODE="auto-edit",
    )
    for request in ("one", "two"):
        terminal.send_line(request)
        terminal.wait_for(f"Wrote {request}.")
        terminal.wait_until(lambda: terminal.full_text().count("1 ok") == 1 + (request == "two"), "the end")  # noqa: B023
    terminal.send(ESC + ESC)
    for text in (WHICH_REQUEST, "→ two", "  one"):
        terminal.wait_in_window(text)
    terminal.pause()
    terminal.send(ENTER)
    terminal.wait_for(REWOUND)
    terminal.wait_until(lambda: "\n> two" in terminal.window_text(), "the request to be back in the prompt")
    assert sorted(path.name for path in terminal.folder.glob("*.txt")) == ["a.txt"]
    terminal.send("\x15and now" + ENTER)
    terminal.wait_for("Still here.")
    contexts = [event["content"] for event in events(terminal) if event.get("role") == "context"]
    assert "Wrote one." in str(contexts[-1]) and "Wrote two." not in str(contexts[-1])


def test_escape_leaves_the_list_of_requests(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(AGAIN)
    assert_usable(terminal)
    terminal.wait_until(lambda: result_of(terminal) == [0], "the end")
    terminal.pause()
    terminal.send(ESC + ESC)
    terminal.wait_for(WHICH_REQUEST)
    terminal.send(ESC)
    terminal.pause()
    assert [event for event in events(terminal) if event["type"] == "rewind"] == []
    terminal.send("and now" + ENTER)
    terminal.wait_until(lambda: result_of(terminal) == [0, 0], "another answer")


@pytest.mark.needs("bwrap")
def test_a_rewind_right_after_a_kill_takes_back_what_the_killed_command_changed(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        reply_to("one", plan(step("a"))),
        step_call("a", "run_command", command="echo changed > a.txt; touch ready; sleep 100"),
        AGENT_APPROVAL_MODE="yolo",
    )
    (terminal.folder / "a.txt").write_text("before\n")
    terminal.send_line("one")
    terminal.wait_until((terminal.folder / "ready").exists, "the command to run")
    os.kill(terminal.child.pid, signal.SIGKILL)
    (session,) = [path.name for path in (terminal.user.data / "sessions").iterdir()]
    again = open_terminal(words=("-r", session))
    again.wait_ready()
    again.send_line("/rewind")
    again.wait_for(WHICH_REQUEST)
    again.pause()
    again.send(ENTER)
    again.wait_for(REWOUND)
    assert (terminal.folder / "a.txt").read_text() == "before\n"
    assert not (terminal.folder / "ready").exists()
