"""Ctrl-C at any moment, in any order and after any pause: a usable prompt within a second, and no process left."""

import os
import random
import termios
import time
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, TerminalSession, child_processes, command_line_of, ctrl, wait_gone
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.repl.test_endings import AGAIN, RESTORED, assert_usable, result_of
from tests.cli.repl.test_remembering import memory_decision
from tests.cli.terminal_user import answer, composer_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
ScreenCheck = Callable[[TerminalSession], bool]
Script = tuple[dict[str, object], ...]
LONG_MS = 20_000
# A second, and what a machine that is busy with other tests may add to it.
SOON_S = 2.0
STUBBORN = "trap '' INT TERM HUP QUIT; echo on; while :; do sleep 61; done"


def in_window(text: str) -> ScreenCheck:
    return lambda seat: text in seat.window_text()


def has_process(command: str) -> ScreenCheck:
    return lambda seat: any(command in command_line_of(pid) for pid in child_processes(seat.child.pid))


def plan_reply(request: str, *steps: dict[str, object]) -> dict[str, object]:
    return reply_to(request, plan(*steps))


# By the request that leads there: how the model behaves, and the sign that it has come so far.
MOMENTS: dict[str, tuple[Script, ScreenCheck]] = {
    "plan": (({**plan_reply("plan", step("a1")), "delay_ms": LONG_MS},), in_window("planning")),
    "plan aloud": (
        ({**plan_reply("plan aloud", step("a2")), "chunks": 40, "chunk_delay_ms": 500},),
        in_window("planning"),
    ),
    "think": ((plan_reply("think", step("a3")), step_reply("a3", "x", delay_ms=LONG_MS)), in_window("a3 Title")),
    "talk": (
        (plan_reply("talk", step("a4")), step_reply("a4", "word " * 200, chunks=200, chunk_delay_ms=100)),
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
    "push": ((plan_reply("push", step("a7")), step_call("a7", "run_command", command="git push")), in_window("[n] no")),
    "wonder": (
        (plan_reply("wonder", {"id": "a8", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
        in_window("type a number"),
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
        (reply_to("from now on", answer("All right, tabs.")), memory_decision(delay_ms=60_000)),
        in_window("All right, tabs."),
    ),
}
SCRIPT = tuple(reply for script, _ in MOMENTS.values() for reply in script)


def open_session(sit: Open, **environ: str) -> TerminalSession:
    seat = sit(AGAIN, *SCRIPT, rows=40, AGENT_MEMORY_TIMEOUT_S="60", **environ)
    seat.wait_for("Ctrl-D leaves")
    return seat


def reach(seat: TerminalSession, moment: str) -> None:
    seat.send(moment + ENTER)
    seat.wait_until(lambda: MOMENTS[moment][1](seat), f"the moment {moment!r}")


def assert_at_prompt(seat: TerminalSession) -> None:
    """Type something and take it back."""
    seat.send("usable?")
    seat.wait_until(lambda: "> usable?" in seat.window_text(), "what is typed")
    seat.send(ctrl("u"))
    seat.wait_until(lambda: "> usable?" not in seat.window_text(), "an empty prompt")


@pytest.mark.parametrize("environ", [{}, {"AGENT_BACKEND": "host", "AGENT_APPROVAL_MODE": "yolo"}])
def test_ctrl_c_ends_any_moment_of_a_run(sit: Open, environ: dict[str, str]) -> None:
    chance = random.Random(seed := os.urandom(4).hex())
    seat = open_session(sit, **environ)
    moments = [moment for moment in MOMENTS if not (environ and moment == "push")]
    chance.shuffle(moments)
    for number, moment in enumerate(moments, 1):
        reach(seat, moment)
        seat.watch(chance.choice((0, 0.05, 0.5)))
        below = child_processes(seat.child.pid)
        began = time.monotonic()
        seat.send(ctrl("c"))
        seat.wait_until(lambda number=number: len(result_of(seat)) == number, f"{moment!r} to end, seed {seed}")
        assert_at_prompt(seat)
        assert time.monotonic() - began < SOON_S, f"{moment!r}, seed {seed}"
        assert wait_gone(below), f"{moment!r}, seed {seed}: {[command_line_of(pid) for pid in below]}"
    assert set(result_of(seat)) == {0, 130}
    assert "Traceback" not in assert_usable(seat, within_s=5)


def test_ctrl_c_twice_at_any_moment_leaves_the_terminal_as_it_was(sit: Open) -> None:
    moment = random.choice(sorted(MOMENTS))
    seat = sit(*SCRIPT, AGENT_MEMORY_TIMEOUT_S="60")
    before = termios.tcgetattr(seat.child.child_fd)
    seat.wait_for("Ctrl-D leaves")
    reach(seat, moment)
    below = child_processes(seat.child.pid, with_keeper=True)
    seat.send(ctrl("c") + ctrl("c"))
    seat.wait_process_end()
    assert termios.tcgetattr(seat.child.child_fd) == before, moment
    assert (seat.wait_exit(), wait_gone(below)) == (0, True), moment
    assert len(result_of(seat)) == 1, moment
    assert [seat.raw_output.rfind(on) > seat.raw_output.rfind(off) for on, off in RESTORED] == [True] * 3


def test_ctrl_c_takes_back_one_thing_at_a_time(sit: Open) -> None:
    seat = open_session(sit, EDITOR="sleep", VISUAL="sh -c 'sleep 64'")
    reach(seat, "push")
    seat.pause()
    # Words for a card first, then the run.
    seat.send("w")
    seat.wait_for("say why not: Enter sends it, Ctrl-C gives it up")
    seat.send("not tod")
    seat.wait_for("> not tod")
    seat.send(ctrl("c"))
    seat.wait_gone("not tod")
    seat.wait_until(lambda: "[n] no" in seat.window_text(), "the card to be back")
    assert result_of(seat) == []
    seat.send(ctrl("c"))
    seat.wait_until(lambda: result_of(seat) == [130], "the run to end")
    # A menu, a search, a draft: the line, and nothing else.
    for typed, sign in (("/mo", "Show or choose the model."), (ctrl("r") + "pus", "search"), ("a draft", "> a draft")):
        seat.send(typed)
        seat.wait_for(sign)
        seat.send(ctrl("c"))
        seat.wait_gone(sign)
        assert_at_prompt(seat)
    # The editor, which has the terminal.
    seat.send("text" + ctrl("x") + ctrl("e"))
    seat.wait_until(lambda: has_process("sleep 64")(seat), "the editor")
    below = child_processes(seat.child.pid)
    seat.send(ctrl("c"))
    seat.wait_for("did not end well")
    assert wait_gone(below)
    seat.send(ctrl("u"))
    # What was steered goes with its run.
    reach(seat, "think")
    seat.send("hurry" + ctrl("s") + ctrl("c"))
    seat.wait_until(lambda: result_of(seat) == [130, 130], "the run to end")
    assert_usable(seat, within_s=5)


def test_an_own_command_that_defies_ctrl_c_is_ended_by_pressing_it_again(sit: Open) -> None:
    seat = open_session(sit)
    seat.send_line("!trap '' INT; sleep 65; sleep 66")
    seat.wait_until(lambda: has_process("sleep 65")(seat), "the command")
    below = child_processes(seat.child.pid)
    began = time.monotonic()
    seat.send(ctrl("c") * 3)
    seat.wait_for("your next request takes this output along")
    assert_at_prompt(seat)
    assert time.monotonic() - began < SOON_S + 1
    assert wait_gone(below)
    assert [event for event in events(seat) if event["type"] == "result"] == []
