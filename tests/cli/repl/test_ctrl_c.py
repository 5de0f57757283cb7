"""Ctrl-C at any moment, in any order and after any pause: the prompt stays usable and no process is left."""

import os
import random
import termios
from collections.abc import Callable

import pytest

from cli.external_programs import editor_failed
from cli.repl.repl import SHELL_OUTPUT_NOTE
from cli.repl.ui.approval_cards import DENY_HINT, QUESTION_HINT
from cli.repl.ui.input_focus import WRITING_HINTS
from tests.cli.repl.terminal_session import (
    ENTER,
    OpenTerminal,
    TerminalSession,
    child_processes,
    command_line_of,
    ctrl,
    wait_gone,
)
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.repl.test_endings import AGAIN, RESTORED, assert_usable, result_of
from tests.cli.repl.test_memory_updates import memory_decision
from tests.cli.repl.ui.test_input import MODEL_HELP
from tests.cli.terminal_user import answer, composer_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
ScreenCheck = Callable[[TerminalSession], bool]
Script = tuple[dict[str, object], ...]
# Longer than any wait of a test: only Ctrl-C ends it in time.
LONG_MS = 60_000
STUBBORN = "trap '' INT TERM HUP QUIT; echo on; while :; do sleep 61; done"


def in_window(text: str) -> ScreenCheck:
    return lambda terminal: text in terminal.window_text()


def has_process(command: str) -> ScreenCheck:
    return lambda terminal: any(command in command_line_of(pid) for pid in child_processes(terminal.child.pid))


def plan_reply(request: str, *steps: dict[str, object]) -> dict[str, object]:
    return reply_to(request, plan(*steps))


# By request: the script of the model, and the check that the run has reached the moment.
MOMENTS: dict[str, tuple[Script, ScreenCheck]] = {
    "plan": (({**plan_reply("plan", step("a1")), "delay_ms": LONG_MS},), in_window("planning")),
    "plan aloud": (
        ({**plan_reply("plan aloud", step("a2")), "chunks": 40, "chunk_delay_ms": 500},),
        in_window("planning"),
    ),
    "think": ((plan_reply("think", step("a3")), step_reply("a3", "x", delay_ms=LONG_MS)), in_window("a3 Title")),
    "harness": (
        (plan_reply("harness", step("a4")), step_reply("a4", "word " * 200, chunks=200, chunk_delay_ms=100)),
        in_window("word word"),
    ),
    "work": (
        (plan_reply("work", step("a5")), step_call("a5", "run_command", command="sleep 62 & sleep 63")),
        has_process("sleep 63"),
    ),
    "defy": (
        (plan_reply("defy", step("a6")), step_call("a6", "run_command", command=STUBBORN)),
        has_process("sleep 61"),
    ),
    "push": (
        (plan_reply("push", step("a7")), step_call("a7", "run_command", command="git push")),
        in_window(DENY_HINT),
    ),
    "wonder": (
        (plan_reply("wonder", {"id": "a8", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
        in_window(QUESTION_HINT),
    ),
    "revise": (
        (
            plan_reply("revise", step("a9"), step("b9", "a9")),
            step_reply("a9", "It differs.\nSURPRISE: nothing is as expected"),
            {**plan_reply("revise", step("c9")), "delay_ms": LONG_MS},
        ),
        in_window("1/2 steps"),
    ),
    "compose": (
        (
            plan_reply("compose", step("a10"), step("b10")),
            step_reply("a10", "one"),
            step_reply("b10", "two"),
            {**composer_reply("never"), "delay_ms": LONG_MS},
        ),
        in_window("2/2 steps"),
    ),
    "from now on use tabs": (
        (reply_to("from now on", answer("All right, tabs.")), memory_decision(delay_ms=LONG_MS)),
        in_window("All right, tabs."),
    ),
}
SCRIPT = tuple(reply for script, _ in MOMENTS.values() for reply in script)


def open_session(open_terminal: OpenTerminal, **environ: str) -> TerminalSession:
    terminal = open_terminal(AGAIN, *SCRIPT, rows=40, AGENT_MEMORY_TIMEOUT_S="60", **environ)
    terminal.wait_ready()
    return terminal


def reach(terminal: TerminalSession, moment: str) -> None:
    terminal.send(moment + ENTER)
    terminal.wait_until(lambda: MOMENTS[moment][1](terminal), f"the moment {moment!r}")


def assert_at_prompt(terminal: TerminalSession) -> None:
    """Type something and delete it."""
    terminal.send("usable?")
    terminal.wait_until(lambda: "> usable?" in terminal.window_text(), "the typed text")
    terminal.send(ctrl("u"))
    terminal.wait_until(lambda: "> usable?" not in terminal.window_text(), "an empty prompt")


@pytest.mark.parametrize("environ", [{}, {"AGENT_BACKEND": "host", "AGENT_APPROVAL_MODE": "yolo"}])
def test_ctrl_c_stops_a_run_at_any_moment(open_terminal: OpenTerminal, environ: dict[str, str]) -> None:
    chance = random.Random(seed := os.urandom(4).hex())
    terminal = open_session(open_terminal, **environ)
    moments = [moment for moment in MOMENTS if not (environ and moment == "push")]
    chance.shuffle(moments)
    for number, moment in enumerate(moments, 1):
        reach(terminal, moment)
        terminal.watch(chance.choice((0, 0.05, 0.5)))
        children = child_processes(terminal.child.pid)
        terminal.send(ctrl("c"))
        terminal.wait_until(lambda number=number: len(result_of(terminal)) == number, f"{moment!r} to end, seed {seed}")
        assert_at_prompt(terminal)
        assert wait_gone(children), f"{moment!r}, seed {seed}: {[command_line_of(pid) for pid in children]}"
    assert set(result_of(terminal)) == {0, 130}
    assert "Traceback" not in assert_usable(terminal)


def test_ctrl_c_twice_at_any_moment_restores_the_terminal(open_terminal: OpenTerminal) -> None:
    moment = random.choice(sorted(MOMENTS))
    terminal = open_terminal(*SCRIPT, AGENT_MEMORY_TIMEOUT_S="60")
    before = termios.tcgetattr(terminal.child.child_fd)
    terminal.wait_ready()
    reach(terminal, moment)
    children = child_processes(terminal.child.pid, with_own=True)
    terminal.send(ctrl("c") + ctrl("c"))
    terminal.wait_process_end()
    assert termios.tcgetattr(terminal.child.child_fd) == before, moment
    assert (terminal.wait_exit(), wait_gone(children)) == (0, True), moment
    assert len(result_of(terminal)) == 1, moment
    assert [terminal.raw_output.rfind(on) > terminal.raw_output.rfind(off) for on, off in RESTORED] == [True] * 3


def test_ctrl_c_cancels_one_thing_at_a_time(open_terminal: OpenTerminal) -> None:
    editor = "sh -c 'sleep 64'"
    terminal = open_session(open_terminal, EDITOR="sleep", VISUAL=editor)
    reach(terminal, "push")
    terminal.pause()
    # First the reason for a card, then the run.
    terminal.send("w")
    terminal.wait_for(WRITING_HINTS["reason"])
    terminal.send("not tod")
    terminal.wait_for("> not tod")
    terminal.send(ctrl("c"))
    terminal.wait_gone("not tod")
    terminal.wait_until(lambda: DENY_HINT in terminal.window_text(), "the card to be back")
    assert result_of(terminal) == []
    terminal.send(ctrl("c"))
    terminal.wait_until(lambda: result_of(terminal) == [130], "the run to end")
    # A menu, a search, a draft: only the line.
    for typed, sign in (("/mo", MODEL_HELP), (ctrl("r") + "pus", "search"), ("a draft", "> a draft")):
        terminal.send(typed)
        terminal.wait_for(sign)
        terminal.send(ctrl("c"))
        terminal.wait_gone(sign)
        assert_at_prompt(terminal)
    # The editor, which owns the terminal.
    terminal.send("text" + ctrl("x") + ctrl("e"))
    terminal.wait_until(lambda: has_process("sleep 64")(terminal), "the editor")
    children = child_processes(terminal.child.pid)
    terminal.send(ctrl("c"))
    terminal.wait_for(editor_failed(editor).message)
    assert wait_gone(children)
    terminal.send(ctrl("u"))
    # A steering message is dropped with its run.
    reach(terminal, "think")
    terminal.send("hurry" + ctrl("s") + ctrl("c"))
    terminal.wait_until(lambda: result_of(terminal) == [130, 130], "the run to end")
    assert_usable(terminal)


def test_a_shell_command_that_ignores_ctrl_c_is_killed_by_pressing_it_repeatedly(open_terminal: OpenTerminal) -> None:
    terminal = open_session(open_terminal)
    terminal.send_line("!trap '' INT; sleep 65; sleep 66")
    terminal.wait_until(lambda: has_process("sleep 65")(terminal), "the command")
    children = child_processes(terminal.child.pid)
    terminal.send(ctrl("c") * 3)
    terminal.wait_for(SHELL_OUTPUT_NOTE)
    assert_at_prompt(terminal)
    assert wait_gone(children)
    assert [event for event in events(terminal) if event["type"] == "result"] == []
